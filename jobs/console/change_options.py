"""A change as it is written on the command line -> the change.

--leave ID   --strategy 'CONSISTENT_HASH={virtual_node_count = 20}'   --queues broker-a=8
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace

import rebalance_core as core
from rebalance_core import Change, ChangeError, State

from ..config.masking import is_masked, shows_secret

#: The most new ids that an error writes out, to be pasted; the digits of a number that are read.
_MOST_NEW, _MOST_DIGITS = 8, 3


def parse_client(make: Callable[[str], Change]) -> Callable[[str], Change]:
    """The change of a client that is named by its id, or as reports show an id with a secret."""

    def parse(text: str) -> Change:
        if not shows_secret(text):
            return make(text)
        return replace(make(text), targets=lambda of: make(_true_id(text, of.state)).targets(of))

    return parse


def _true_id(shown: str, state: State) -> str:
    fitting = {member.client_id for member in state.members if is_masked(member.client_id, shown)}
    if len(fitting) != 1:
        raise ChangeError(
            f"expected one client that is shown as {shown!r}, there are {len(fitting)}"
        )
    return fitting.pop()


def parse_new_client(text: str) -> Change:
    """The change of a client that joins; how many join is no id of one."""
    if not (text.isascii() and text.isdigit()):
        return core.join(text)
    number = int(text[:_MOST_DIGITS])
    each = " ".join(f"--join new-{one}" for one in range(1, min(number, _MOST_NEW) + 1))
    more = " and so on" if number > _MOST_NEW else ""
    raise ChangeError(
        f"expected a client id such as 10.0.0.9@app, came the number {text}: if so many new "
        f"processes were meant, each with an id of its own, write {each or '--join new-1'}{more}"
    )


def parse_strategy(text: str) -> Change:
    """``NAME``, or ``NAME={an inline table of TOML}`` with its parameters."""
    name, has_params, table = text.partition("=")
    if not has_params:
        return core.use_strategy(name)
    try:
        params = tomllib.loads(f"params = {table}")["params"]
    except tomllib.TOMLDecodeError as error:
        raise ChangeError(f"expected NAME={{key = value, ...}}, came {text!r}: {error}") from error
    return core.use_strategy(name, params)


def parse_new_broker(text: str) -> Change:
    """``NAME=N``: a broker with so many queues of the topic."""
    name, separator, number = text.rpartition("=")
    if not separator or not name:
        raise ChangeError(f"expected NAME=N, came {text!r}")
    return core.add_broker(name, _number(number))


def parse_queues(text: str) -> Change:
    """``N`` queues on every broker that has any, or ``NAME=N`` on one."""
    name, separator, number = text.rpartition("=")
    return core.resize(_number(number), name if separator else None)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ChangeError(f"expected a number of queues, came {text!r}")
    return int(text)


#: Readers of the value of each option.
CHANGES: Mapping[str, Callable[[str], Change]] = {
    "--leave": parse_client(core.leave),
    "--join": parse_client(parse_new_client),
    "--strategy": parse_strategy,
    "--add-broker": parse_new_broker,
    "--remove-broker": core.remove_broker,
    "--queues": parse_queues,
    "--unify-list": core.unify_list,
    "--mend": core.mend,
}
