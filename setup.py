"""What pyproject.toml cannot say: the README as an index of packages shows it.

There a link relative to the checkout leads nowhere. REPOSITORY_URL is where the checkout can be
read: with it the links are absolute, and the package names its pages; without it the texts of the
links stay, and pictures go.
"""

import os
import re
from pathlib import Path

from setuptools import setup

#: A link or a picture, within the checkout.
_WITHIN = r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]*)\)"


def description(readme: str, url: str) -> str:
    """The README with links that lead somewhere from elsewhere.

    >>> description("![a](a.png) [b](b.md#c)", "https://example.org/x")
    '![a](https://example.org/x/raw/HEAD/a.png) [b](https://example.org/x/blob/HEAD/b.md#c)'
    >>> description("![a](a.png) [b](b.md#c)", "")
    ' b'
    """

    def absolute(match: re.Match[str]) -> str:
        is_picture, text, target = match.groups()
        if not url:
            return "" if is_picture else text
        return f"{is_picture}[{text}]({url}/{'raw' if is_picture else 'blob'}/HEAD/{target})"

    return re.sub(_WITHIN, absolute, readme)


if __name__ == "__main__":
    home = os.environ.get("REPOSITORY_URL", "").rstrip("/")
    pages = {"Documentation": "README.md", "Changes": "CHANGELOG.md", "Security": "SECURITY.md"}
    setup(
        long_description=description(
            (Path(__file__).parent / "README.md").read_text(encoding="utf-8"), home
        ),
        long_description_content_type="text/markdown",
        project_urls={"Repository": home}
        | {name: f"{home}/blob/HEAD/{page}" for name, page in pages.items()}
        if home
        else {},
    )
