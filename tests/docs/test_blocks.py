"""Every block of the README and the guides works as it stands there.

A page is a session: its blocks are run from top to bottom, in a folder that has the sample dumps.
A block of text right after one is what it prints. A block that cannot be run here has the reason in
the page, ``<!-- not run: needs a cluster -->``; its commands, options and settings are parsed.
"""

from __future__ import annotations

import argparse
import ast
import doctest
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import tests.support.blocks
from jobs import __version__
from jobs.cli import main
from jobs.config.known_issues import load_known_issues
from jobs.config.settings import load_settings
from jobs.console.arguments import build_parser
from tests.support.blocks import ROOT, Block, blocks, shows

DOCS = ROOT / "docs"
TRANSLATED = DOCS / "zh"
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if TRANSLATED not in page.parents),
]
#: Pages whose blocks have a test of their own, which runs each.
ELSEWHERE = {DOCS / "alerts.md": "test_alerts_page.py", DOCS / "lakes.md": "test_lakes.py"}
#: The option of a Chinese page's commands: they print Chinese, so that such a page is run, too.
IN_CHINESE = " --language zh"
#: Options of spark-submit and of make.
OF_OTHERS = {"--master", "--py-files", "--archives", "--conf"}
LANGUAGES = {"sh", "python", "pycon", "toml", "json", "sql", "text", "yaml"}
BLOCKS = [block for page in PAGES for block in blocks(page)]


def of_language(*languages: str) -> Any:
    found = [block for block in BLOCKS if block.language in languages]
    return pytest.mark.parametrize("block", found, ids=[block.where for block in found])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_has_its_language(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    # Indented text after an empty line is a block, too, of which nobody can tell what it is.
    assert not re.search(r"\n\n {4,}\S[^\n]*", text)


@of_language("sh")
def test_a_shell_reads_every_command_and_the_parsers_its_options(block: Block) -> None:
    subprocess.run(["bash", "-n", "-c", block.text], check=True)
    for command in block.commands():
        program = Path(command[0]).name
        if program == "rebalance-audit" and command[1:] not in (["--version"], ["--help"]):
            # The one variable of the pages, of which the command checks the form.
            build_parser(None).parse_args(
                [word.replace("$date", "2026-11-20") for word in command[1:]]
            )
        elif program == "spark-submit":
            (entry,) = (n for n, word in enumerate(command) if word.startswith("jobs/"))
            assert (ROOT / command[entry]).is_file()
            build_parser(None).parse_args([Path(command[entry]).stem, *command[entry + 1 :]])
        elif program == "make":
            targets = {word for word in command[1:] if "=" not in word}
            made = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)
            assert targets <= set(made)
        elif program == "pip":
            for word in command[2:]:
                if not word.startswith("--"):
                    _check_installs(word)
        elif program == "python" and command[1] == "-m":
            assert (ROOT / command[2].replace(".", "/")).with_suffix(".py").is_file()


def _check_installs(word: str) -> None:
    """What a page installs is what pyproject.toml asks for: no pandas that Spark cannot use."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wheel, _, of_wheel = word.partition(".whl")
    if of_wheel or word.endswith(".whl"):
        name = project["name"].replace("-", "_")
        assert wheel == f"dist/{name}-{__version__}-py3-none-any"
        word = project["name"] + of_wheel
    requirement = Requirement(word)
    assert requirement.extras <= set(extras)
    if requirement.name != project["name"]:
        assert word in [*project["dependencies"], *(each for e in extras.values() for each in e)]


@of_language("python", "json")
def test_a_block_is_of_its_language(block: Block) -> None:
    {"python": ast.parse, "json": json.loads}[block.language](block.text)


@of_language("pycon")
def test_every_example_of_a_prompt_prints_what_it_shows(block: Block) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, {}, block.where, None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def _options(parser: argparse.ArgumentParser) -> set[str]:
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {option for each in action.choices.values() for option in _options(each)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_option_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"(?<!`)`(--[a-z][a-z-]*)(?: [^`]*)?`(?!`)", text))
    assert named - OF_OTHERS <= _options(build_parser(None))


@of_language("toml")
def test_every_block_of_settings_is_accepted(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(block.text)
    if block.text.startswith("# conf/known_issues.toml"):
        assert load_known_issues(file).known_issues
    else:
        load_settings(file)


def _run_shell(block: Block, values: dict[str, Any]) -> str:
    commands = list(block.commands())
    is_plain = not re.search(r"[|<>$*;&]|engine.spark", block.text)
    if is_plain and all(each[0] == "rebalance-audit" and len(each) > 2 for each in commands):
        # A process of its own imports all for each command, and prints the same.
        with redirect_stdout(io.StringIO()) as printed, redirect_stderr(printed):
            codes = [main(each[1:]) for each in commands]
        assert codes == [*[0] * (len(codes) - 1), block.exit_code], printed.getvalue()
        return printed.getvalue()
    bin_ = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", block.text],
        env={**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == block.exit_code, f"{block.where}: {done.returncode}\n{done.stdout}"
    return done.stdout


def _run_python(block: Block, values: dict[str, Any]) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(block.text, block.where, "exec"), values)  # noqa: S102 - the page's own text
    return printed.getvalue()


_RUN = {"sh": _run_shell, "python": _run_python}


#: What a reader begins with; the blocks of the other pages are run by the house.
FIRST_READ = (ROOT / "README.md", DOCS / "tutorial.md")


def _session(page: Path) -> Any:
    """A page with what it needs: Spark, where a block of it has a session."""
    run = [block for block in blocks(page) if block.not_run is None]
    marks = [pytest.mark.e2e, *([] if page in FIRST_READ else [pytest.mark.house])]
    if any(block.language == "python" and re.search(r"\bspark\b", block.text) for block in run):
        marks.append(pytest.mark.spark)
    return pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


def original(page: Path) -> Path:
    """The English page: README.md of README.zh-CN.md, docs/faq.md of docs/zh/faq.md."""
    if page.parent == ROOT:
        return ROOT / "README.md"
    return DOCS / page.relative_to(TRANSLATED)


#: The other Chinese pages have the commands of the English ones, and what these print.
IN_TWO_LANGUAGES = [
    page
    for page in [*ROOT.glob("README.*.md"), *sorted(TRANSLATED.rglob("*.md"))]
    if original(page) not in ELSEWHERE and any(IN_CHINESE in block.text for block in blocks(page))
]
SESSIONS = [
    page
    for page in [*PAGES, *IN_TWO_LANGUAGES]
    if page not in ELSEWHERE
    and any(each.language in _RUN and not each.not_run for each in blocks(page))
]


@pytest.mark.parametrize("page", [_session(page) for page in SESSIONS])
def test_every_block_of_a_page_runs_and_prints_what_follows_it(
    page: Path, folder: Path, request: pytest.FixtureRequest
) -> None:
    values: dict[str, Any] = {}
    if request.node.get_closest_marker("spark"):
        values["spark"] = request.getfixturevalue("spark_here")
    for block in blocks(page):
        if block.not_run is not None or block.language not in _RUN:
            continue
        printed = _RUN[block.language](block, values)
        if block.prints is not None:
            assert shows(block.prints, printed), f"{block.where} printed:\n{printed}"


@pytest.mark.e2e
@pytest.mark.usefixtures("folder")
def test_the_readme_begins_with_the_first_finding_of_make_audit() -> None:
    made = re.search(r"rebalance-audit run (.*) \\\n\t\t(.*)", (ROOT / "Makefile").read_text())
    assert made is not None
    places = {"SAMPLES": "tests/data/captures", "OUT": "made", "ENGINE": "local"}
    places["SAMPLE_SETTINGS"] = "tests/data/sample.toml"
    words = re.sub(r"\$\((\w+)\)", lambda of: places[of[1]], " ".join(made.groups()))
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["run", *shlex.split(words)]) == 0
    _, first, others = re.split(
        r"^(.* / \S+: )", printed.getvalue(), maxsplit=1, flags=re.MULTILINE
    )
    for page in (ROOT / "README.md", ROOT / "README.zh-CN.md"):
        begins = blocks(page)[0]
        assert "make audit" in begins.text
        assert f"{first}{others}".startswith(begins.prints or "nothing")


def test_pages_with_a_test_of_their_own_have_it() -> None:
    for page, test in ELSEWHERE.items():
        assert page.name in (Path(__file__).parent / test).read_text()


def _executable(page: Path) -> list[tuple[str, str]]:
    """Its blocks without their comments and the option: a translation has these in its language."""
    return [
        (block.language, re.sub(r"\s*#.*", "", block.text).replace(IN_CHINESE, ""))
        for block in blocks(page)
        if block.language not in ("text", "json")
    ]


@pytest.mark.parametrize(
    "page",
    [*ROOT.glob("README.*.md"), *sorted(TRANSLATED.rglob("*.md"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_translation_has_the_blocks_of_its_page(page: Path) -> None:
    english = original(page)
    assert _executable(page) == (_executable(english) if english.exists() else [])


def test_the_examples_of_the_reader_hold() -> None:
    assert doctest.testmod(tests.support.blocks) == doctest.TestResults(failed=0, attempted=3)
