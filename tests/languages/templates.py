"""Every template of a text: read from the sources, as nobody lists them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, nodes

from jobs.declared.kinds import EVENT_KINDS, KINDS
from rebalance_core.client_id import ClientKind
from rebalance_core.english import counted
from rebalance_core.texts import forms

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "jobs").glob("*/templates/*.*"))
#: By function the arguments that are templates, by place and by name. ``language`` and ``t`` are
#: the names that a ``Language`` has where it is called.
TEMPLATES = {
    "Text": (0,),
    "t": (0,),
    "language": (0,),
    "agreeing": (1,),
    "_about_clients": (1,),
    "_describe_members": (1, 2),
    "_who_uses": (1,),
    "_judged": (1,),
    "Change": (1,),
    "joined": (1, "template"),
}
#: By function the arguments that are a noun, with its plural where it has one of its own.
NOUNS = {"count": (1, 2), "counted": (0, 1)}
#: What is read by operators of the audit alone, in English: counts there have no translation.
IN_ENGLISH = (
    "jobs/commands/",
    "jobs/alerts/alerting.py",
    "jobs/pipeline/ingest.py",
    "jobs/shell/closing.py",
    "jobs/console/progress.py",
    "jobs/reports/problem_lines.py",
    "jobs/reports/table_text.py",
    "jobs/storage/retention.py",
)


@dataclass(frozen=True)
class Place:
    """Where a template is: for whoever has to translate it."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Found:
    """A template; ``None`` where what makes it is no literal, and is in no assignment either."""

    template: str | None
    place: Place
    code: str


def python_files() -> list[Path]:
    return sorted(each for top in ("jobs", "rebalance_core") for each in (ROOT / top).rglob("*.py"))


@cache
def found() -> tuple[Found, ...]:
    """Every template of the Python code and of the pages, with its place."""
    every: list[Found] = []
    for path in python_files():
        name = str(path.relative_to(ROOT))
        if not name.startswith(IN_ENGLISH):
            every += in_python(ast.parse(path.read_text(encoding="utf-8")), name)
    for path in PAGES:
        if path.suffix in {".html", ".md", ".svg", ".txt"}:
            every += in_page(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    return tuple(every)


def in_python_text(code: str) -> Iterator[Found]:
    return in_python(ast.parse(code), "")


def in_python(tree: ast.Module, path: str) -> Iterator[Found]:
    assigned = _assigned(tree)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = _name_of(call.func)
        place = Place(path, call.lineno)
        for argument in _arguments(call, TEMPLATES.get(name, ())):
            for template in _literals(argument, assigned):
                for form in [None] if template is None else forms(template):
                    yield Found(form, place, ast.unparse(argument))
        if isinstance(call.func, ast.Name):
            nouns = _nouns(call, assigned)
            yield from (Found(each, place, ast.unparse(call)) for each in nouns)


def _nouns(call: ast.Call, assigned: dict[str, list[ast.expr]]) -> Iterator[str | None]:
    """The templates of a count: of a noun and its plural, which may come as a pair."""
    name = _name_of(call.func)
    if name == "list_of":
        pairs = _arguments(call, (2, "more"))
    else:
        nouns = _arguments(call, NOUNS.get(name, ()))
        pairs = [each.value for each in nouns if isinstance(each, ast.Starred)]
        if nouns and not pairs:
            yield from _of_count(*(_literals(each, assigned) for each in nouns))
    for pair in pairs:
        yield from _of_count(*([each] for each in _literals(pair, assigned)))


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _arguments(call: ast.Call, wanted: tuple[int | str, ...]) -> list[ast.expr]:
    by_place = [
        call.args[each] for each in wanted if isinstance(each, int) and each < len(call.args)
    ]
    return by_place + [each.value for each in call.keywords if each.arg in wanted]


def _assigned(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """By name what is assigned to it, anywhere in a module; of a tuple all parts to each name."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            arguments = [*node.posonlyargs, *node.args][-len(node.defaults) :]
            for argument, default in zip(arguments, node.defaults, strict=False):
                assigned.setdefault(argument.arg, []).append(default)
            continue
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets, value = [node.target], node.value
        elif isinstance(node, ast.For | ast.comprehension):
            targets, value = [node.target], node.iter
        else:
            continue
        for target in targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name):
                    assigned.setdefault(each.id, []).append(value)
    return assigned


def _literals(
    expression: ast.expr, assigned: dict[str, list[ast.expr]], seen: frozenset[str] = frozenset()
) -> list[str | None]:
    """The texts that an expression may be; None among them where it may be something else."""
    inner: list[ast.expr] = []
    match expression:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Constant(value=None):
            return []
        case ast.IfExp(body=body, orelse=orelse):
            inner = [body, orelse]
        case ast.BoolOp(values=values) | ast.Dict(values=values):
            inner = values
        case ast.Tuple(elts=values) | ast.List(elts=values) | ast.Set(elts=values):
            inner = values
        case ast.Subscript(value=value) | ast.Starred(value=value):
            inner = [value]
        case ast.Call(func=ast.Attribute(value=value, attr="values" | "items" | "get")):
            inner = [value]
        case ast.Name(id=name) if name in assigned and name not in seen:
            inner, seen = assigned[name], seen | {name}
    if not inner:
        return [None]
    return [text for each in inner for text in _literals(each, assigned, seen)]


def in_page(source: str, path: str) -> Iterator[Found]:
    for call in Environment(autoescape=True).parse(source).find_all(nodes.Call):
        name = call.node.name if isinstance(call.node, nodes.Name) else ""
        texts = [each.value if isinstance(each, nodes.Const) else None for each in call.args]
        place = Place(path, call.lineno)
        if name == "t":
            yield Found(texts[0], place, str(call))
        elif name == "joined":
            yield Found(texts[1], place, str(call))
        elif name == "agreeing":
            yield from (Found(each, place, str(call)) for each in forms(texts[1]))
        elif name == "count":
            nouns = [[each] for each in texts[1:]]
            yield from (Found(each, place, str(call)) for each in _of_count(*nouns))


def _of_count(
    singulars: list[str | None], plurals: list[str | None] | None = None
) -> Iterator[str | None]:
    for number, singular in enumerate(singulars):
        plural = plurals[number] if plurals and number < len(plurals) else None
        yield from [None] if singular is None else forms(counted(singular, plural))


def declared() -> set[str]:
    """The templates of what is declared once, and made a text of elsewhere."""
    every = (*KINDS.values(), *EVENT_KINDS.values())
    titles = {text for each in every for text in (each.title, each.meaning)}
    return titles | {kind.value for kind in ClientKind}


@cache
def templates() -> dict[str, Place]:
    """Every template that has words, with one of its places."""
    here = Place("declared", 0)
    every = {each.template: each.place for each in found() if each.template is not None}
    every |= dict.fromkeys(declared(), here)
    return {template: place for template, place in every.items() if has_words(template)}


_SLOT = re.compile(r"\{\w*(?::[^{}]*)?\}")


def without_slots(template: str) -> str:
    return _SLOT.sub("", template)


def has_words(template: str) -> bool:
    """Whether there is anything to translate: signs and slots may be alike in all languages."""
    return any(character.isalpha() for character in without_slots(template))
