"""Words that people type for a command or a table -> what has another name here."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from ..commands.options import COMMANDS

#: The words for each thing that letters do not lead to, each in the singular.
_WORDS_OF: Mapping[str, str] = {
    "report --nights 30": "night history trend day week month calendar index site overview",
    "report": "page html ticket markdown picture summarize",
    "report --finding ID": "finding svg drawing image",
    "show": "table list ls print get",
    "show --group G": "group consumer consumergroup topic",
    "show --client ID": "client member pod process id instance",
    "show summary": "sum total number count figure gate",
    "show problems": "problem issue wrong open worst",
    "show group_faults": "fault cause error",
    "show verdict": "result outcome state",
    "show gaps": "gap missing incomplete",
    "show group_health": "health coverage backlog lag wait waiting unaudited audited",
    "show orphaned_queues": "orphan lost unread unconsumed nobody missed",
    "show duplicate_queues": "twice double dup",
    "show stalled_queues": "stall stuck blocked hang hung",
    "show stacked_client_ids": "shared sharing sharedid duplicateid",
    "show unreadable_queues": "unreadable unwritable",
    "show former_findings": "former resolved mended repaired gone returned",
    "show reassignments": "rebalance reassign moved move change",
    "show events": "event deploy restart failover timeline happened",
    "show allocations": "allocation owner share assignment who",
    "show allocation_drift": "drift held holding",
    "show state_runs": "situation period",
    "show group_load": "load balance uneven idle",
    "show quarantine": "refused rejected bad badline",
    "explain": "why diagnose describe detail reason moment",
    "what-if": "simulate predict scale plan try shrink grow add remove",
    "check": "fix fixed verify recheck confirm",
    "alert": "send notify notification message mail slack dingtalk webhook",
    "alert --metrics FILE": "metric prometheus prom grafana",
    "live": "now watch status monitor current",
    "collect": "dump fetch scrape poll crawl",
    "run": "start nightly job all",
    "init": "setup config configure install setting cron schedule",
    "prune": "clean cleanup delete rm retention purge",
    "--help": "help man usage",
    "--version": "version",
}
#: The least likeness of two words that are spelt alike, and the fewest letters of a beginning: as
#: for names of other things (``rebalance_core.errors.nearest``), which brings NumPy.
_ALIKE, _SHORTEST_BEGINNING = 0.7, 3
_WORDS = {word: meant for meant, words in _WORDS_OF.items() for word in words.split()}
_TABLES = [each.removeprefix("show ") for each in _WORDS_OF if re.fullmatch(r"show \w+", each)]


def meant_by(word: str, tables: Collection[str] = _TABLES) -> list[str]:
    """The command, without ``rebalance-audit``, that a word may mean; ``tables``: the names of all.

    A word by its meaning first, then what is spelt alike: a command, a table, a word.

    >>> meant_by("nights"), meant_by("Events"), meant_by("shw"), meant_by("orphaned")
    (['report --nights 30'], ['show events'], ['show'], ['show orphaned_queues'])
    >>> meant_by("histroy"), meant_by("xyz")
    (['report --nights 30'], [])
    """
    names = {command: command for command in COMMANDS} | {
        table: f"show {table}" for table in tables
    }
    folded = word.casefold()
    for each in (folded, folded.removesuffix("s")):
        if meant := names.get(each) or _WORDS.get(each):
            return [meant]
    for there in (names, _WORDS):
        near = get_close_matches(folded, there, cutoff=_ALIKE)
        if not near and len(folded) >= _SHORTEST_BEGINNING:
            near = [each for each in there if each.startswith(folded)]
        if near:
            return list(dict.fromkeys(there[each] for each in near))
    return []
