"""``init``: the settings of a new place, and what audits it each night."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..arguments import Options, Parser, add_options
from ..choices import DEFAULT_SETTINGS, WEBHOOK_SERVICES
from ..errors import SettingsError
from ..output import say
from ..terminal import ask, is_terminal
from ..text import shell_word

EXAMPLE = "init --namesrv 10.0.0.1:9876 --output /data/audit --messages SLACK --schedule cron"
DETAIL = """
On a terminal it asks for what no option says. Nothing that is there is replaced without --force."""

_NOWHERE = "NOWHERE"
_TO = ",".join((*WEBHOOK_SERVICES, _NOWHERE))
#: By schedule the templates, the files beside the settings that they become, and what is done next.
_SCHEDULES: Mapping[str | None, tuple[Mapping[str, str], str]] = {
    None: ({}, ""),
    "cron": ({"docs/deploy/crontab": "crontab"}, "(crontab -l; cat {0}/crontab) | crontab -"),
    "dag": (
        {"jobs/airflow/rebalance_audit.py": "rebalance_audit.py"},
        "read {0}/rebalance_audit.py, set its variable, and copy it into the folder of the DAGs",
    ),
    "kubernetes": (
        {
            "docs/deploy/kubernetes/nightly.yaml": "nightly.yaml",
            "conf/known_issues.toml": "known_issues.toml",
        },
        "kubectl create configmap rebalance-audit --from-file=audit.toml={1} "
        "--from-file={0}/known_issues.toml && kubectl apply --filename {0}/nightly.yaml",
    ),
}


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    table = f"""
    --namesrv A  host:port of the nameservers that are collected from
    --dumps PATH  or the dumps that are there already
    --output DIR  the folder that gets snapshots/ and reports/
    --messages {{{_TO}}}  where messages go
    --schedule {{cron,dag,kubernetes}}  what audits each night is written, too: a line of cron,
            a DAG of Airflow, or a CronJob
    --settings FILE  the file that is written; default: {DEFAULT_SETTINGS}
    --force  replace what is there
    """
    add_options(command, table)


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    from ..settings import Settings, checked, parse_toml

    _ask_what_is_missing(args)
    settings = Path(args.settings or DEFAULT_SETTINGS)
    given = _given(args, settings.absolute())
    files = {settings: _filled("conf/audit.toml", given)}
    for template, name in _SCHEDULES[args.schedule][0].items():
        files[settings.parent / name] = _filled(template, given)
    checked(Settings, str(settings), parse_toml(str(settings), files[settings]))
    if (there := [str(path) for path in files if path.exists()]) and not args.force:
        raise SettingsError(f"{', '.join(there)}: already there; --force replaces it")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        say(f"wrote {path}")
    for line in _next(args, settings, given):
        say(f"next: {line}")
    return 0


def _ask_what_is_missing(args: Options) -> None:
    """Puts what is typed on a terminal in the place of options that were not given."""
    asks = is_terminal(sys.stdin)
    if args.namesrv and args.dumps:
        raise SettingsError("expected --namesrv or --dumps, came both")
    if not (args.namesrv or args.dumps):
        source = asks and ask("Ask which nameservers (host:port)? Or read which dumps (a path)?")
        if not source:
            raise SettingsError("expected --namesrv or --dumps, or an answer on a terminal")
        is_path = "/" in source or Path(source).exists()
        setattr(args, "dumps" if is_path else "namesrv", source)
    if not args.output:
        args.output = (asks and ask("In which folder do reports go?", "out")) or "out"
    if not args.messages:
        args.messages = (asks and ask(f"Where do messages go ({_TO})?", _NOWHERE)) or _NOWHERE
        args.messages = args.messages.upper()
        if args.messages not in _TO.split(","):
            raise SettingsError(f"expected one of {_TO}, came {args.messages!r}")


def _given(args: Options, settings: Path) -> dict[str, str | list[str]]:
    """By name in the templates the value that goes there: those of settings, and a crontab's."""
    from ..collect.options import namesrvs_of

    output = _absolute(args.output)
    dumps = _absolute(args.dumps) if args.dumps else f"{output}/dumps"
    try:
        namesrvs = namesrvs_of(args.namesrv) if args.namesrv else []
    except ValueError as error:
        raise SettingsError(f"--namesrv: {error}") from error
    given: dict[str, str | list[str]] = {
        "dumps": [dumps],
        "reports": f"{output}/reports",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "SETTINGS": str(settings),
        "OUTPUT": output,
        "DUMPS": dumps,
        "NAMESRV": ";".join(namesrvs),
    }
    if args.messages != _NOWHERE:
        secret = "secret" if args.messages == "PAGERDUTY" else "webhook"
        given |= {"service": args.messages, f"{secret}_file": str(settings.with_name(secret))}
    return given


def _absolute(path: str) -> str:
    return path if "://" in path else str(Path(path).absolute())


def _filled(template: str, given: Mapping[str, str | list[str]]) -> str:
    """A template with the values in the place of its examples, which may be in a comment."""
    from ..settings import shipped_text

    found = shipped_text(Path(template))
    if found is None:
        raise SettingsError(f"{template} is not here: the wheel and a checkout have it")
    text = found[1]
    for name, value in given.items():
        line = re.compile(rf"^(?:# )?{name}( ?= ?).*$", re.M)
        if example := line.search(text):
            shown = f"{name}{example[1]}{json.dumps(value, ensure_ascii=False)}"
            text = f"{text[: example.start()]}{shown}{text[example.end() :]}"
    return text if "service" in given else text.replace(" --webhook", "")


def _next(args: Options, settings: Path, given: Mapping[str, str | list[str]]) -> Iterator[str]:
    """What is to be done now, in its order."""
    words = {name: shell_word(str(value)) for name, value in given.items()}
    for name in ("webhook_file", "secret_file"):
        if name in given:
            what = "URL of the webhook" if name == "webhook_file" else "routing key"
            yield f"put the {what} into {given[name]}, which nobody else may read (chmod 600)"
    if args.namesrv:
        dumps = words["DUMPS"]
        yield f"rebalance-audit collect --namesrv {words['NAMESRV']} --dumps {dumps} --every 60"
    named = "" if settings == DEFAULT_SETTINGS else f" --settings {words['SETTINGS']}"
    yield f"rebalance-audit run --output {words['OUTPUT']}{named}"
    if then := _SCHEDULES[args.schedule][1]:
        yield then.format(shell_word(str(settings.parent)), shell_word(str(settings)))
