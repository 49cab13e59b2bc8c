"""The commands by which a person confirms a problem and goes on with it, ready to be pasted.

Groups, topics and client ids are chosen by strangers: each becomes one word of a shell.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from rebalance_core.repairs import REPAIRS

from ..storage import PublishedRun
from ..texts.shown import iso, shell_word
from .problems import Problem

#: The most of a fault's brokers with a line each, of the cluster's where the fault names none, and
#: of its clients; the others are asked in the same way. The most nameservers in one command.
_MOST_NAMED, _MOST_BROKERS, _MOST_CLIENTS, _MOST_NAMESERVERS = 12, 2, 3, 4
_PLACEHOLDER = re.compile(r"\b(GROUP|TOPIC|BROKER_ADDR|CLIENT_ID)\b")


#: The commands that the page on a kind has, with placeholders.
Checks = Callable[[str], Iterable[str]]


class Commands(NamedTuple):
    """Lines for a shell: ``confirm`` asks the servers, ``go_on`` asks the audit, ``repaired``
    whether a repair worked: of what passed by itself nobody asks.
    """

    confirm: tuple[str, ...]
    go_on: tuple[str, ...]
    repaired: tuple[str, ...] = ()


def option(name: str, value: str) -> str:
    """An option of our commands, also where a value looks like an option itself.

    >>> option("group", "G 1"), option("group", "-x")
    ("--group 'G 1'", '--group=-x')
    """
    return f"--{name}{'=' if value.startswith('-') else ' '}{shell_word(value)}"


def beside(place: str, reports: str) -> str:
    """A folder as it is called from where the reports are: no path of the machine.

    >>> beside("/home/a/out/snapshots/x", "/home/a/out/reports"), beside("s3://b/x", "/r/reports")
    ('snapshots/x', 's3://b/x')
    >>> beside("/home/b/snapshots", "/srv/out/reports")
    'snapshots'
    """
    if "://" in place and not place.startswith("file:"):
        return place
    here = PurePosixPath(reports.removeprefix("file://")).parent
    there = PurePosixPath(place.removeprefix("file://"))
    return str(there.relative_to(here)) if there.is_relative_to(here) else there.name


def where_published(published: PublishedRun, reports: str) -> str:
    """The options that name a published run."""
    return f"{option('reports', beside(reports, reports))} {option('date', published.date)}"


def commands_for(
    problem: Problem, published: PublishedRun, reports: str, checks: Checks
) -> Commands:
    """The commands for a problem: those of the pages on its main cause and on its findings.

    A broker whose address the run does not have is left as ``BROKER_ADDR``, and a nameserver as
    ``NAMESRV_ADDR``.
    """
    cause, place, summary = problem.cause, problem.place, published.summary
    kinds = [*([cause.fault] if cause else []), *problem.lasting, *problem.passing]
    values = {
        "GROUP": [place.consumer_group],
        "TOPIC": [place.topic],
        "BROKER_ADDR": _addresses(summary["brokers"].get(place.cluster, {}), problem),
        "CLIENT_ID": list(cause.client_ids if cause else ())[:_MOST_CLIENTS],
    }
    run = where_published(published, reports)
    confirm = [
        line if line.startswith("mqadmin ") else f"{line} {run}"
        for template in dict.fromkeys(check for kind in kinds for check in checks(kind))
        for line in _filled(template, values)
    ]
    topic = f"{option('group', place.consumer_group)} {option('topic', place.topic)}"
    several = len(summary["groups"]["clusters"]) > 1 or summary["groups"]["left_out"]
    cluster = f" {option('cluster', place.cluster)}" if several else ""
    snapshots = option("snapshots", beside(str(summary["inputs"]["snapshots"]), reports))
    at = iso(cause.last_seen if cause else problem.last_seen)
    # With other settings it would say something else than the page does.
    settings = "".join(f" {option('set', value)}" for value in summary.get("settings_set", ()))
    moment = f"{snapshots} {topic} --at {at}{cluster}{settings}"
    go_on = [f"rebalance-audit explain {moment}"]
    if cause and cause.fault in REPAIRS:
        go_on.append(f"rebalance-audit what-if {moment} --mend {cause.fault}")
    go_on.append(f"rebalance-audit show group_faults {topic} {run}")
    repaired = []
    if problem.is_counted:
        witnesses = summary.get("witnesses", {}).get("nameservers", {})
        namesrvs = witnesses.get(place.cluster, ())[:_MOST_NAMESERVERS] or ["NAMESRV_ADDR"]
        asked = " ".join(option("namesrv", namesrv) for namesrv in namesrvs)
        repaired.append(f"rebalance-audit check {topic}{cluster} {asked} {run}")
    return Commands(tuple(dict.fromkeys(confirm)), tuple(go_on), tuple(repaired))


def _filled(template: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The command with each of the values of the placeholder that has several.

    >>> list(_filled("ask -g GROUP -b BROKER_ADDR", {"GROUP": ["a b"], "BROKER_ADDR": ["1", "2"]}))
    ["ask -g 'a b' -b 1", "ask -g 'a b' -b 2"]
    >>> list(_filled("ask -b BROKER_ADDR", {"BROKER_ADDR": []}))
    ['ask -b BROKER_ADDR']
    """
    words = {name: list(map(shell_word, every)) or [name] for name, every in values.items()}
    used = [words[name] for name in _PLACEHOLDER.findall(template)]
    for number in range(max(map(len, used), default=1)):
        chosen = {name: every[min(number, len(every) - 1)] for name, every in words.items()}
        yield _PLACEHOLDER.sub(lambda found, chosen=chosen: chosen[found[0]], template)  # type: ignore[misc]


def _addresses(brokers: Mapping[str, str], problem: Problem) -> list[str]:
    """The addresses of the brokers that the fault is about, else of the first of the cluster."""
    concerned = problem.cause.broker_names if problem.cause else ()
    named = [brokers[name] for name in concerned if name in brokers]
    return named[:_MOST_NAMED] or [brokers[name] for name in sorted(brokers)[:_MOST_BROKERS]]
