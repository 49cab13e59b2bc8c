"""Files of TOML, held against a model: all errors at once, with their paths and what was expected.

Unknown keys are refused, for a misspelt key that is ignored is a setting that silently does not
hold. Settings, known issues and the collector's clusters are such files.
"""

import re
import sys
import sysconfig
import tomllib
import warnings
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Strict, ValidationError

from rebalance_core.errors import nearest

from ..errors import SettingsError
from ..texts.shown import did_you_mean, visible

#: A file of settings or known issues has some kilobytes; what is larger is another file.
_MOST_FILE_BYTES = 4 << 20
#: Tables and lists within each other: settings have four.
_DEEPEST = 32
#: The most errors that are listed, each with so many characters of what is wrong and of what came.
_MOST_ERRORS, _LONGEST = 50, 400
#: The environment variables of settings; those of secrets have one reader each.
PREFIX = "REBALANCE_AUDIT_"

#: A number as a file has it: ``true`` is none, and would else be 1.
WholeNumber = Annotated[int, Strict()]
Number = Annotated[float, Strict()]


class Section(BaseModel):
    """A part of a settings file: what it does not know it refuses."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def that(check: Callable[[str], object]) -> AfterValidator:
    """Lets a text through, as it is, that a function takes without a ValueError."""

    def checked_text(text: str) -> str:
        check(text)
        return text

    return AfterValidator(checked_text)


def _is_pattern(pattern: str) -> None:
    """ValueError where it is no regular expression.

    How long it takes is not looked at: a pattern such as ``(a+)+b`` is the operator's to avoid.
    """
    try:
        with warnings.catch_warnings():
            # Python warns of what a later version may read otherwise; that is no error today.
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"expected a regular expression, came {pattern!r}: {error}") from error


#: A regular expression over a whole name.
NamePattern = Annotated[str, that(_is_pattern)]


def variable_of(setting: str) -> str:
    """The environment variable of a setting.

    >>> variable_of("paths.reports")
    'REBALANCE_AUDIT_PATHS__REPORTS'
    """
    return PREFIX + setting.upper().replace(".", "__")


def read_text(path: str | Path) -> str:
    """The text of a file that was named; SettingsError where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            # A device or a pipe may have no end.
            content = file.read(_MOST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"{path} cannot be read: {reason}; check the path") from error
    return _decoded(path, content)


def _decoded(path: str | Path, content: bytes) -> str:
    if len(content) > _MOST_FILE_BYTES:
        raise SettingsError(
            f"{path}: expected at most {_MOST_FILE_BYTES:,} bytes, came more: is it this file?"
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        is_utf16 = content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        came = "UTF-16" if is_utf16 else f"the byte {content[error.start]:#04x} in line {line}"
        raise SettingsError(
            f"{path}: expected a text in UTF-8, came {came}: save the file as UTF-8"
        ) from error


def find_text(default: Path) -> tuple[str, str] | None:
    """Finds a file that was not named: its path and its text, here, else as it ships."""
    if default.is_file():
        return str(default.absolute()), read_text(default)
    return shipped_text(default)


def shipped_text(name: Path) -> tuple[str, str] | None:
    """Finds a file of the project: its path and its text, beside the packages, else installed.

    Beside the packages it is in a checkout, and in the zip that spark-submit gets.
    """
    beside = Path(__file__).parents[2] / name
    loader: Any = sys.modules[__name__].__loader__
    try:
        content = loader.get_data(str(beside))
    except OSError:
        installed = installed_folder() / name
        return (str(installed), read_text(installed)) if installed.is_file() else None
    return str(beside), _decoded(beside, content)


def installed_folder() -> Path:
    """The folder that a wheel brings besides its packages: settings, pages on the findings."""
    return Path(sysconfig.get_path("data")) / "share" / "rebalance-audit"


def source_of(named: str | None, default: Path) -> str | None:
    """The file that is read: the one that was named, else the one that is found; None: none."""
    if named:
        return str(Path(named).absolute())
    found = find_text(default)
    return None if found is None else found[0]


def parse_toml(source: str, text: str) -> dict[str, Any]:
    """The values of a TOML text; SettingsError where it is none."""
    try:
        return _loaded(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise SettingsError(
            f"{source}: expected TOML: {visible(str(error))}; mend it there"
        ) from error


def _loaded(text: str) -> dict[str, Any]:
    """The values of a TOML text; ValueError where it is none, or has what no setting can be."""
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ValueError("lists or tables are nested too deep") from None
    # Not by recursion: a key such as a.a.a makes tables as deep as it is long.
    inner: list[tuple[Any, int]] = [(values, 0)]
    while inner:
        value, depth = inner.pop()
        if depth > _DEEPEST:
            raise ValueError(f"lists or tables are nested more than {_DEEPEST} deep")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError("expected numbers of 64 bits, came a larger one")
        if isinstance(value, str) and "\0" in value:
            raise ValueError("expected texts without the character NUL")
        children = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            inner += [(child, depth + 1) for child in children]
    return values


_Model = TypeVar("_Model", bound=BaseModel)


#: The expected values, by pydantic's type of an error; the context has its numbers.
_EXPECTED = {
    "missing": "expected a value, there is none",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "string_type": "expected a text",
    "bool_type": "expected true or false",
    "tuple_type": "expected a list",
    **dict.fromkeys(("dict_type", "model_type", "dataclass_type"), "expected a section"),
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected {ge} or more",
    "less_than_equal": "expected {le} or less",
    "literal_error": "expected {expected}",
    "ip_any_network": "expected a network as 10.0.0.0/8",
    "string_too_short": "expected a text of {min_length} characters or more",
    "string_pattern_mismatch": "expected a text like {pattern}",
    "too_short": "expected {min_length} of them or more",
}
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_NOTHING_CAME = ("missing", *_UNKNOWN)


def checked(
    model: type[_Model],
    source: str,
    values: dict[str, Any],
    given: Mapping[str, str] = MappingProxyType({}),
) -> _Model:
    """The values as the model; SettingsError with every error, its path and where that is from.

    ``given``: the paths that did not come from the source, and the option or variable of each.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines: list[str] = []
        places: set[str] = set()
        errors = error.errors()
        for problem in errors:
            within = (other["loc"][: len(problem["loc"])] == problem["loc"] for other in errors)
            if problem["type"] == "too_short" and sum(within) > 1:
                continue  # what is wrong in the list is not counted, and is said
            path = ".".join(map(str, problem["loc"]))
            name = _given_as(path, problem, given)
            wrong = f"  {name or path or '(top)'}: {_problem_of(model, path, problem, name)}"
            is_said = problem["type"] in _NOTHING_CAME or ", came " in problem["msg"]
            came = "" if is_said else f", came {problem['input']!r}"
            lines.append(excerpt(wrong) + excerpt(came))
            is_variable = name.startswith(PREFIX)
            places.add(name and f"of the {'environment' if is_variable else 'command line'}")
        if len(lines) > _MOST_ERRORS:
            lines[_MOST_ERRORS:] = [f"  and {len(lines) - _MOST_ERRORS} more"]
        place = " and ".join(sorted(places)) if all(places) else visible(source)
        kind = model.model_config.get("title", "settings")
        raise SettingsError(f"{kind} {place}:\n" + "\n".join(lines)) from error


def _given_as(path: str, error: Mapping[str, Any], given: Mapping[str, str]) -> str:
    """The option or variable that a path came by, with what is below it; empty: the source."""
    for setting, name in reversed(tuple(given.items())):
        if f"{path}.".startswith(f"{setting}."):
            return name + path.removeprefix(setting)
        # It made a section where there is none; what does not fit together may be the file's.
        if setting.startswith(f"{path}.") and error["type"] != "value_error":
            return name
    return ""


def _problem_of(model: type[BaseModel], path: str, error: Mapping[str, Any], given: str) -> str:
    """The problem of a value, in our words."""
    if error["type"] in _UNKNOWN:
        section, _, last = path.rpartition(".")
        if any(isinstance(part, int) for part in error["loc"]):
            there = _names_of_entry(model, error["loc"][:-1])
            # A variable has the whole list: an entry has none of its own.
            before = "" if given.startswith(PREFIX) else f"{section}."
            near = [f"{before}{name}" for name in nearest(last, there)]
        else:
            there = list(names_of(model))
            # A name may be right, and its section missing.
            near = nearest(path, there) or [name for name in there if name.endswith(f".{last}")]
            if given.startswith(PREFIX):
                near = [variable_of(name) for name in near]
        other_file = "" if given else "; is it the right file?"
        what = "key" if "title" in model.model_config else "setting"
        return f"there is no such {what}{did_you_mean(near) or other_file}"
    expected = _EXPECTED.get(error["type"])
    if expected is None:
        return str(error["msg"]).removeprefix("Value error, ")
    return expected.format(**error.get("ctx", {}))


def _names_of_entry(model: Any, path: Iterable[str | int]) -> list[str]:
    """The names of an entry in a list, such as ``strategies.0``."""
    for name in path:
        if isinstance(name, str):
            kind = model.model_fields[name].annotation
            model = (get_args(kind) or (kind,))[0]
    return list(names_of(model))


def names_of(model: type[BaseModel]) -> Iterator[str]:
    """The names of all settings of a model, with those of their sections before them."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from (f"{name}.{setting}" for setting in names_of(kind))
        elif is_dataclass(kind):
            yield from (f"{name}.{setting.name}" for setting in fields(kind))
        else:
            yield name


def excerpt(text: str) -> str:
    """The text as it is ``visible``; of a long one the beginning, and how long it is."""
    shown = visible(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}... ({len(text):,} characters)"


def set_value(values: dict[str, Any], setting: str, text: str, given: str) -> None:
    """Sets a value by its path; ``given``: the option or variable that has it.

    Raises SettingsError where the path leads through what is no section, or the text is no value.
    """
    *sections, last = setting.split(".")
    if len(sections) > _DEEPEST:
        raise SettingsError(f"{excerpt(given)}: expected at most {_DEEPEST} names")
    value = _value(given, text)
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise SettingsError(f"{given}: {section} is no section")
    values[last] = value


def _value(given: str, text: str) -> Any:
    """The value of an option or variable: what the text is in TOML, else the text itself."""
    try:
        values = _loaded(f"value = {text}")
    except tomllib.TOMLDecodeError:
        values = {}
    except ValueError as error:
        raise SettingsError(f"{excerpt(given)}: {error}") from error
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SettingsError(f"{given}: expected UTF-8, came {excerpt(repr(text))}") from error
    # A text of several lines may be a value and further keys: then it is a text.
    return values["value"] if values.keys() == {"value"} else text
