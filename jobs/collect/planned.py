"""A round in two parts: what is to be asked of whom, and then each address by itself.

``plan`` finds out what there is to ask; ``ask_planned`` asks one address its share, in another
process if need be. A plan is the lines of a round without their answers: what belongs into a round
is decided in one place, ``rounds.py``.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobs.collect import questions
from jobs.collect.client import (
    NO_ANSWER,
    NOT_REACHED,
    OK,
    Answer,
    ClientOptions,
    RemotingClient,
)
from jobs.collect.memory import Memory
from jobs.collect.questions import Question, RequestCode
from jobs.collect.rounds import Round, Target, answered_line
from jobs.instants import Instant

#: By the kind of a line: its question.
_QUESTIONS: Mapping[str, Callable[[Mapping[str, Any]], Question]] = {
    "consumer_connection": lambda line: questions.members(line["consumer_group"]),
    "topic_route": lambda line: questions.route(line["topic"]),
    "cluster_info": lambda _: questions.brokers(),
    "subscription_group": lambda _: questions.groups(),
    "message_request_mode": lambda _: questions.request_modes(),
    "consumer_topics": lambda line: questions.topics_of(line["consumer_group"]),
    "consume_stats": lambda line: questions.offsets(line["consumer_group"]),
    "consumer_running_info": lambda line: questions.running_info(
        line["consumer_group"], line["client_id"]
    ),
}
#: The order in which an address is asked: what may take the whole time-out comes last.
_ORDER = {kind: place for place, kind in enumerate(_QUESTIONS)}
#: What shows nothing else that is to be asked.
_NOT_NEEDED_TO_PLAN = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC,
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
}
#: What a broker before 5.0 answers to some questions, of which there is no line then.
_NOT_SUPPORTED, _SINCE_5 = 3, ("message_request_mode", "consumer_topics")
_ANSWER = {"collected_at", "body", "error_code", "error_message"}

#: What a line has besides the answer: kind, cluster, snapshot_time, and who is asked of what.
Unanswered = Mapping[str, Any]


class _Scout(RemotingClient):
    """Asks what is needed to plan; all other questions count as answered, and are not asked."""

    async def ask(self, address: str, question: Question) -> Answer:
        if question.code in _NOT_NEEDED_TO_PLAN:
            return Answer(address, OK, None, b"", self._clock())
        return await super().ask(address, question)


async def plan(
    target: Target, options: ClientOptions, clock: Callable[[], Instant], snapshot_time: Instant
) -> dict[str, list[Unanswered]]:
    """By address what a round asks of it.

    Asks for brokers, groups, members and offsets, which show the groups, topics and members; who
    does not answer is in the plan all the same. Empty where no nameserver answers.
    """
    lines: list[dict[str, Any]] = []
    async with _Scout(options, clock) as scout:
        await Round(target, scout, Memory(), snapshot_time, lines.append).run()
    planned: defaultdict[str, list[Unanswered]] = defaultdict(list)
    asked = [line for line in lines if line["kind"] in _ORDER]
    for line in sorted(asked, key=lambda line: _ORDER[line["kind"]]):
        address = line.get("namesrv_addr") or line["broker_addr"]
        planned[address].append({key: line[key] for key in line if key not in _ANSWER})
    return dict(planned)


async def ask_planned(
    address: str,
    planned: Sequence[Unanswered],
    options: ClientOptions,
    clock: Callable[[], Instant],
    longest: float,
) -> list[dict[str, Any]]:
    """The lines of one address. What was not asked after ``longest`` seconds is an error.

    As in a round, there is no line for a running info that nobody asked the client for, nor for the
    request modes of a broker that has none.
    """
    loop = asyncio.get_running_loop()
    ends = loop.time() + longest
    lines: list[dict[str, Any]] = []
    left = iter(planned)
    silent = 0

    async def ask_in_turn(client: RemotingClient) -> None:
        nonlocal silent
        for line in left:
            is_info = line["kind"] == "consumer_running_info"
            if is_info and silent >= options.per_address:
                continue
            if loop.time() >= ends:
                answer = client.not_asked(address, f"it took longer than {longest:g} s")
            else:
                answer = await client.ask(address, _QUESTIONS[line["kind"]](line))
            if is_info:
                silent += answer.code == NO_ANSWER
                if answer.code == NOT_REACHED:
                    continue
            client.handled(answer)
            if line["kind"] in _SINCE_5 and answer.code == _NOT_SUPPORTED:
                continue
            lines.append(answered_line(line, answer))

    async with RemotingClient(options, clock) as client:
        await asyncio.gather(*(ask_in_turn(client) for _ in range(options.per_address)))
    return lines
