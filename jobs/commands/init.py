"""``init``: the settings of a new installation, and its nightly job."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..collect.collect_options import given_namesrvs
from ..config.choices import (
    DEFAULT_SETTINGS,
    LANGUAGES,
    NOTHING,
    NOWHERE,
    SCHEDULES,
    WEBHOOK_SERVICES,
)
from ..config.settings import Settings
from ..config.toml_files import checked, parse_toml, shipped_text
from ..console.arguments import Options, UsageError, folder
from ..console.output import say
from ..console.progress import complain
from ..console.terminal import ask, is_terminal
from ..errors import SettingsError
from ..texts.shown import shell_word

_Read = TypeVar("_Read")
_TO = ",".join((*WEBHOOK_SERVICES, NOWHERE))
#: Templates of files beside the settings, which have the same names there, by schedule.
_TEMPLATES: Mapping[str | None, Sequence[str]] = {
    None: (),
    "cron": ("docs/deploy/crontab",),
    "dag": ("docs/deploy/nightly_audit.py",),
    "kubernetes": ("docs/deploy/kubernetes/nightly.yaml", "conf/known_issues.toml"),
}
#: The name of what a service needs, and what that is.
_SECRETS = dict.fromkeys(WEBHOOK_SERVICES, ("webhook", "URL of the webhook")) | {
    "PAGERDUTY": ("secret", "routing key")
}


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    settings = Path(args.settings or DEFAULT_SETTINGS)
    # Nobody answers five questions for nothing.
    _check_not_there([settings], args)
    _ask_what_is_missing(args)
    given = _given(args, settings.absolute())
    files = {settings: _filled("conf/audit.toml", given)}
    for name, template in _templates(args).items():
        files[settings.parent / name] = _filled(template, given)
    checked(Settings, str(settings), parse_toml(str(settings), files[settings]))
    _check_not_there(files, args)
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        say(f"wrote {path}")
    steps = {"kubernetes": _next_on_kubernetes, "dag": _next_on_airflow}
    for line in steps.get(args.schedule, _next_here)(args, settings, given):
        say(f"next: {line}")
    return 0


def _check_not_there(files: Iterable[Path], args: Options) -> None:
    if (there := [str(path) for path in files if path.exists()]) and not args.force:
        raise SettingsError(f"{', '.join(there)}: already there; --force replaces it")


def _templates(args: Options) -> dict[str, str]:
    """The template of each file beside the settings, by the file's name."""
    templates = {Path(path).name: path for path in _TEMPLATES[args.schedule]}
    if args.schedule == "kubernetes" and args.namesrv:
        templates["collect.yaml"] = "docs/collect/kubernetes.yaml"
    return templates


def _ask_what_is_missing(args: Options) -> None:
    """Puts what is typed on a terminal in the place of options that were not given."""
    if args.namesrv and args.dumps:
        raise SettingsError("expected --namesrv or --dumps, came both")
    if not (args.namesrv or args.dumps):
        question = "Which nameservers (host:port), or which dumps (a path)?"
        args.dumps, args.namesrv = _answer(question, "", _source)
    if not args.output:
        args.output = _answer("Which folder for the reports?", "out", folder)
    for name, question, choices, otherwise in (
        ("messages", "Where to send alerts", _TO, NOWHERE),
        ("schedule", "How to run it each night", f"{','.join(SCHEDULES)},{NOTHING}", NOTHING),
        ("language", "Which language", ",".join(LANGUAGES), "en"),
    ):
        if not getattr(args, name):
            choice = _answer(f"{question} ({choices})?", otherwise, partial(_one_of, choices))
            setattr(args, name, None if choice == NOTHING else choice)


def _answer(question: str, default: str, read: Callable[[str], _Read]) -> _Read:
    """Asks on a terminal until the answer can be read; elsewhere the default is the answer."""
    asks = is_terminal(sys.stdin)
    while True:
        answer = ask(question, default) if asks else default
        try:
            return read(answer)
        except (SettingsError, UsageError) as error:
            # The input may have ended.
            if not asks or answer == default:
                raise
            complain(str(error))


def _source(answer: str) -> tuple[str | None, list[str]]:
    """The path of dumps, or nameservers, as a path or an address."""
    if not answer:
        raise SettingsError("expected --namesrv or --dumps, or an answer on a terminal")
    is_web_address = answer.startswith(("http://", "https://"))
    if Path(answer).exists() or ("/" in answer and not is_web_address):
        return answer, []
    given_namesrvs([answer])
    return None, [answer]


def _one_of(choices: str, answer: str) -> str:
    for choice in choices.split(","):
        if choice.lower() == answer.lower():
            return choice
    raise SettingsError(f"expected one of {choices}, came {answer!r}")


def _given(args: Options, settings: Path) -> dict[str, Any]:
    """The values for the templates, by name: those of settings, and a crontab's."""
    output = _absolute(args.output)
    dumps = _absolute(args.dumps) if args.dumps else f"{output}/dumps"
    given: dict[str, Any] = {
        "language": args.language,
        "dumps": [dumps],
        "reports": f"{output}/reports",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "SETTINGS": str(settings),
        "OUTPUT": output,
        "DUMPS": dumps,
        "NAMESRV": ";".join(given_namesrvs(args.namesrv)),
    }
    if args.messages != NOWHERE:
        given |= {"service": args.messages, "ALERT": "post"}
        # The other schedules run where no file of this machine is.
        if args.schedule in (None, "cron"):
            secret, _ = _SECRETS[args.messages]
            given[f"{secret}_file"] = str(settings.with_name(secret))
    return given


def _absolute(path: str) -> str:
    return path if "://" in path else str(Path(path).absolute())


def _filled(template: str, given: Mapping[str, Any]) -> str:
    """A template with the values in the place of its examples, which may be in a comment."""
    found = shipped_text(Path(template))
    if found is None:
        raise SettingsError(f"{template} is not here: the wheel and a checkout have it")
    text = found[1]
    for name, value in given.items():
        line = re.compile(rf"^(?:# )?{name}( ?= ?).*$", re.M)
        if example := line.search(text):
            shown = f"{name}{example[1]}{json.dumps(value, ensure_ascii=False)}"
            text = f"{text[: example.start()]}{shown}{text[example.end() :]}"
    namesrvs = given["NAMESRV"].split(";")
    text = re.sub(
        r"(?:^( *)- --namesrv=.*\n)+",
        lambda of: "".join(f"{of[1]}- --namesrv={namesrv}\n" for namesrv in namesrvs),
        text,
        flags=re.M,
    )
    return text if "service" in given else text.replace(" --webhook", "")


def _next_here(args: Options, settings: Path, given: Mapping[str, Any]) -> Iterator[str]:
    words = {name: shell_word(str(value)) for name, value in given.items()}
    if args.messages != NOWHERE:
        name, what = _SECRETS[args.messages]
        file = given[f"{name}_file"]
        yield f"put the {what} into {file}, which nobody else may read (chmod 600)"
    if args.namesrv:
        dumps = words["DUMPS"]
        line = f"rebalance-audit collect --namesrv {words['NAMESRV']} --dumps {dumps} --every 60"
        by_cron = f"nohup {line} --quiet &  # starts it now; cron starts it at each boot"
        yield by_cron if args.schedule == "cron" else line
    named = "" if settings == DEFAULT_SETTINGS else f" --settings {words['SETTINGS']}"
    yield f"rebalance-audit run --output {words['OUTPUT']}{named}"
    if args.schedule == "cron":
        if not args.namesrv:
            folder = f"{words['DUMPS']}/YYYY-MM-DD/"
            yield f"put the dumps of each day (UTC) into {folder}: cron reads that"
        yield f"(crontab -l; cat {shell_word(str(settings.parent))}/crontab) | crontab -"


def _next_on_airflow(args: Options, settings: Path, given: Mapping[str, Any]) -> Iterator[str]:
    if args.messages != NOWHERE:
        name, what = _SECRETS[args.messages]
        yield (
            f"set REBALANCE_AUDIT_{name.upper()} to the {what} in the environment of Airflow's "
            "workers"
        )
    if args.namesrv:
        yield (
            f"keep a collector running, with --namesrv {shell_word(given['NAMESRV'])}, that writes "
            f"into {shell_word(given['DUMPS'])}"
        )
    yield (
        "install the wheel into Airflow's environment: pip install --no-deps "
        "rocketmq_rebalance_audit-*.whl"
    )
    folder = shell_word(str(settings.parent))
    yield (
        f"review {folder}/nightly_audit.py and copy it into the folder of the DAGs; Spark has to "
        "reach its folders"
    )


def _next_on_kubernetes(args: Options, settings: Path, _given: object) -> Iterator[str]:
    folder = shell_word(str(settings.parent))
    manifests = [f"{folder}/{name}" for name in _templates(args) if name.endswith(".yaml")]
    yield (
        f"replace registry.example.org/... by the name of your image in "
        f"{' and '.join(manifests)}; docs/deploy/Dockerfile builds it"
    )
    yield (
        "create two volume claims: rebalance-audit, and rebalance-audit-dumps, which several pods "
        "mount (ReadWriteMany) and which holds a folder for each date"
    )
    if args.messages != NOWHERE:
        name, _ = _SECRETS[args.messages]
        yield (
            "kubectl create secret generic rebalance-audit-alerts "
            f"--from-literal=REBALANCE_AUDIT_{name.upper()}=..."
        )
    yield (
        "kubectl create configmap rebalance-audit "
        f"--from-file=audit.toml={shell_word(str(settings))} "
        f"--from-file={folder}/known_issues.toml"
    )
    yield f"kubectl apply {' '.join(f'--filename {manifest}' for manifest in manifests)}"
