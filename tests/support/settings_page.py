"""Writes the second half of docs/settings.md: python -m tests.support.settings_page.

Every setting with its values, its default and its meaning, which is the comment (#:) above it in
jobs/config/settings.py, or jobs/config/bounds.py; of a section its docstring.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.fields import FieldInfo

from jobs.config import bounds, settings
from jobs.config.settings import Settings
from tests.support.data_dictionary import DOCS, cell

PAGE = DOCS / "settings.md"
#: What comes before it is written by hand.
MARK = "<!-- What follows is written by `make docs` from jobs/config/settings.py. -->\n"
#: How a type is called; a text of patterns is one too.
_TYPES = {"int": "whole number", "float": "number", "str": "text", "dict": "table"}


def page(before: str) -> str:
    """The page with its settings written anew, as Markdown."""
    by_hand, _, _ = before.partition(MARK)
    return "\n".join([by_hand + MARK, *_section(Settings, "")])


def fields_of(section: type) -> Mapping[str, FieldInfo]:
    """The settings of a section, be it a model or a plain dataclass."""
    model: Any = (
        section if issubclass(section, BaseModel) else pydantic_dataclass(section, frozen=True)
    )
    fields: Mapping[str, FieldInfo] = model.__pydantic_fields__
    return fields


def is_section(annotation: Any) -> bool:
    """Whether a type is one that has settings."""
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return is_model or is_dataclass(annotation)


def _section(model: type, path: str) -> Iterator[str]:
    """A section, then those within it."""
    meanings = _meanings(model)
    # A destination has the settings of a single one: these have their lines there.
    own = {
        name: field
        for name, field in fields_of(model).items()
        if not (path.endswith("destinations") and name not in model.__annotations__)
    }
    if path:
        is_list = path in ("strategies", "alerts.destinations")
        yield f"### {f'[[{path}]]' if is_list else path}\n\n{_text(model)}\n"
    inner = {name: each for name, field in own.items() if (each := _model(field)) is not None}
    yield "".join(
        _line(name, field, meanings[name]) for name, field in own.items() if name not in inner
    )
    for name, each in inner.items():
        yield from _section(each, f"{path}.{name}".lstrip("."))


def _text(model: type) -> str:
    return " ".join(str(inspect.getdoc(model)).split())


@cache
def _meanings(model: type) -> dict[str, str]:
    """By setting the comment above it; those of the classes that it is a kind of come first."""
    found = {}
    for each in reversed(model.__mro__):
        if each.__module__ not in (settings.__name__, bounds.__name__):
            continue
        lines = inspect.getsource(each).splitlines()
        for node in ast.parse(inspect.getsource(each)).body[0].body:  # type: ignore[attr-defined]
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                comment = []
                for line in reversed(lines[: node.lineno - 1]):
                    if not line.startswith("    #: "):
                        break
                    comment.insert(0, line.removeprefix("    #: "))
                if comment:
                    found[node.target.id] = " ".join(comment)
    return found


def _model(field: FieldInfo) -> type | None:
    """The section that a setting is, or has a list of, or may be."""
    for each in (field.annotation, *get_args(field.annotation)):
        if is_section(each):
            return each  # type: ignore[no-any-return]
    return None


def _line(name: str, field: FieldInfo, meaning: str) -> str:
    default = field.get_default(call_default_factory=True)
    values = [_values(field)]
    if field.is_required():
        values.append("must be given")
    elif default not in (None, {}):
        values.append(f"default `{json.dumps(default)}`")
    return f"- `{name}` ({'; '.join(values)}): {_marked(meaning)}\n"


def _values(field: FieldInfo) -> str:
    """What a setting may be: its type, and its bounds."""
    literals = [
        value
        for each in (field.annotation, *get_args(field.annotation))
        if get_origin(each) is Literal
        for value in get_args(each)
    ]
    if literals:
        shown = ", ".join(f"`{each}`" for each in literals)
        return f"{'some' if _is_list(field) else 'one'} of {shown}"
    if _is_list(field):
        return "list of texts"
    kind = re.search(r"\b(int|float|str|dict)\b", str(field.annotation))
    assert kind is not None, field
    marks = {type(each): each for each in field.metadata}
    limits = [
        f"{sign} {getattr(marks[type_], attribute):,}"
        for type_, attribute, sign in ((Ge, "ge", "≥"), (Gt, "gt", ">"), (Le, "le", "≤"))
        if type_ in marks
    ]
    return " ".join([_TYPES[kind[1]], *limits])


def _is_list(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is tuple


def _marked(text: str) -> str:
    """A text as Markdown shows it literally, with its code as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else cell(part) for part in parts)


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
