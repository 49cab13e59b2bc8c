"""The templates of a package, of pages as of texts: how they are read, and what they know."""

from collections.abc import Callable, Iterable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates_of(
    package: str,
    shown: Callable[..., Any],
    functions: Iterable[Callable[..., Any]],
    *,
    is_html: bool,
) -> Environment:
    """The templates of a package, which may lie in a zip.

    ``shown`` makes of each value what is printed; ``functions`` are called by their names. HTML is
    escaped, and has no empty line at its end.
    """
    environment = Environment(
        loader=PackageLoader(package),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not is_html,
        autoescape=is_html,  # noqa: S701 - what is no HTML is a text of a terminal
        finalize=shown,
    )
    environment.globals |= {function.__name__: function for function in functions}
    return environment
