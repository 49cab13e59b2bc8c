"""The client against servers that behave, and against servers that do not."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import engines
from jobs.collect import client as client_module
from jobs.collect import questions
from jobs.collect.client import (
    NO_ANSWER,
    NOT_REACHED,
    NOT_UNDERSTOOD,
    Answer,
    RemotingClient,
)
from jobs.collect.frames import Account
from jobs.collect.lines import RoundLines
from jobs.collect.memory import Memory
from jobs.collect.questions import Request, RequestCode
from jobs.collect.turns import Turns
from tests.support.asking import client_of
from tests.support.frames import Frame, decode, encode, encode_binary
from tests.support.replay import Answering, Manners, Replay, answer_frame, answering, recorded

Result = TypeVar("Result")
#: Seconds for an answer: long for a machine under load, short for a person who waits.
TIMEOUT = 0.5
AT = "10.0.0.1:10911"


def clock() -> int:
    return 17


def echo(asked: Frame) -> bytes:
    return answer_frame(repr(sorted(asked.fields.items())).encode())


def run(
    body: Callable[[RemotingClient, Replay], Awaitable[Result]],
    manners: Mapping[str, Manners] | None = None,
    answers: Mapping[str, Answering] | None = None,
    **options: Any,
) -> Result:
    async def whole() -> Result:
        async with Replay(answers or {AT: echo}, manners or {}) as replay:
            chosen = {"timeout_seconds": TIMEOUT, "connect_to": replay.connect_to, **options}
            async with client_of(clock, **chosen) as client:
                return await asyncio.wait_for(body(client, replay), 30)

    return asyncio.run(whole())


async def many(client: RemotingClient, number: int, address: str = AT) -> list[Answer]:
    """The answers to so many questions, each asked in its turn."""
    answers: dict[int, Answer] = {}

    def keep(place: int, answer: Answer, _: object) -> None:
        answers[place] = answer

    def begin() -> None:
        for place in range(number):
            turns.put(address, questions.members(f"G{place}"), partial(keep, place))

    with ThreadPoolExecutor(1) as worker:
        lines = RoundLines(0, lambda _: None, client, {}, worker)
        turns = Turns(client, Memory(), lines)
        await turns.run(begin, lambda: None)
    return [answers[place] for place in range(number)]


async def ask_once(client: RemotingClient, _: Replay) -> Answer:
    return await client.ask(AT, questions.members("G"))


async def at_once(client: RemotingClient, number: int) -> list[Answer]:
    asked = (client.ask(AT, questions.members(f"G{place}")) for place in range(number))
    return list(await asyncio.gather(*asked))


@pytest.mark.parametrize(("name", "version"), [("494", 401), ("514", 441)])
def test_every_recorded_answer_comes_byte_for_byte(name: str, version: int) -> None:
    exchanges = [
        each
        for each in recorded(name)
        if each.response
        and each.address
        and each.asked.version == version
        and each.asked.code in set(RequestCode)
    ]
    assert len(exchanges) > 80

    async def ask(client: RemotingClient, _: Replay) -> None:
        for each in exchanges:
            client.forget()
            question = Request(RequestCode(each.asked.code), tuple(each.asked.fields.items()))
            answer = await client.ask(each.address or "", question)
            assert answer.code == each.answered.code, each.name
            assert answer.remark == each.answered.remark, each.name
            assert answer.body == each.answered.body, each.name

    # The last recording of a question is the one that is replayed: one exchange at a time.
    by_question: dict[object, list[object]] = {}
    for each in exchanges:
        key = (each.address, each.asked.code, tuple(sorted(each.asked.fields.items())))
        by_question.setdefault(key, []).append(each)
    for turn in itertools.zip_longest(*by_question.values()):
        exchanges = [each for each in turn if each is not None]
        run(ask, answers=answering(exchanges), version=version)


def test_no_code_but_those_of_the_list_is_sent() -> None:
    async def ask(client: RemotingClient, replay: Replay) -> int:
        with pytest.raises(ValueError, match="17"):
            await client.ask(AT, Request(17))  # UPDATE_AND_CREATE_TOPIC
        return len(replay.requests)

    assert run(ask) == 0


def test_questions_are_asked_side_by_side_over_one_connection_but_not_too_many() -> None:
    addresses = [f"10.0.0.{number}:10911" for number in range(30)]

    async def ask(client: RemotingClient, replay: Replay) -> Replay:
        answers = await asyncio.gather(*(many(client, 10, each) for each in addresses))
        assert all(answer.is_ok for of_address in answers for answer in of_address)
        return replay

    manners = dict.fromkeys(addresses, Manners(delay=0.05))
    replay = run(ask, manners, dict.fromkeys(addresses, echo), timeout_seconds=20)
    # Without a limit for all there would be 120. How near one comes to it a busy machine decides.
    assert replay.most_at_one == 4
    assert 32 < replay.most_at_all <= 64
    assert replay.connections == len(addresses)


def test_an_answer_in_the_binary_form_is_read() -> None:
    binary = encode_binary(Frame(206, 1, flag=1, remark="not online"))

    answer = run(ask_once, {AT: Manners(junk=lambda _: binary)})
    assert (answer.code, answer.remark) == (206, "not online")


def test_an_address_that_is_silent_costs_one_time_out() -> None:
    async def ask(client: RemotingClient, replay: Replay) -> tuple[list[Answer], float, int]:
        began = asyncio.get_running_loop().time()
        answers = await many(client, 100)
        return answers, asyncio.get_running_loop().time() - began, len(replay.requests)

    answers, seconds, requests = run(ask, {AT: Manners(hangs_after=0)})
    assert seconds < TIMEOUT + 2
    # One is asked until it has answered: the other 99 are not sent.
    assert requests == 1
    assert {answer.code for answer in answers} == {NO_ANSWER, NOT_REACHED}
    first = next(answer for answer in answers if answer.code == NO_ANSWER)
    assert first.remark == f"{AT}: no answer to GET_CONSUMER_CONNECTION_LIST (203) within 0.5 s"
    assert f"not asked: given up in this round: {first.remark}" in str(answers[-1].remark)


@pytest.mark.long
def test_those_that_hang_do_not_take_the_places_of_the_others() -> None:
    """With all the four places of an address, 16 that hang would fill the 64 of all."""
    addresses = [f"10.0.0.{number}:10911" for number in range(40)]
    hung = addresses[:20]

    async def ask(client: RemotingClient, _: Replay) -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        began = loop.time()

        async def of_one(address: str) -> float:
            answers = await many(client, 10, address)
            assert {answer.is_ok for answer in answers} == {address not in hung}
            return loop.time() - began

        seconds = await asyncio.gather(*map(of_one, addresses))
        return max(seconds[20:]), max(seconds)

    manners = dict.fromkeys(hung, Manners(hangs_after=0))
    healthy, all_of_them = run(ask, manners, dict.fromkeys(addresses, echo), timeout_seconds=2.0)
    assert healthy < 1.5
    assert all_of_them < 3.5


def test_what_was_given_up_is_asked_again_in_the_next_round() -> None:
    async def ask(client: RemotingClient, replay: Replay) -> list[int]:
        first = await ask_once(client, replay)
        replay.manners = {}
        second = await ask_once(client, replay)
        client.forget()
        return [each.code for each in (first, second, await ask_once(client, replay))]

    assert run(ask, {AT: Manners(hangs_after=0)}) == [NO_ANSWER, NOT_REACHED, 0]


def test_a_client_that_is_silent_does_not_make_its_broker_silent() -> None:
    def answer(asked: Frame) -> bytes | None:
        return None if asked.code == RequestCode.GET_CONSUMER_RUNNING_INFO else echo(asked)

    async def ask(client: RemotingClient, _: Replay) -> list[int]:
        silent = await client.ask(AT, questions.running_info("G", "frozen"))
        return [silent.code, (await client.ask(AT, questions.members("G"))).code]

    assert run(ask, answers={AT: answer}) == [NO_ANSWER, 0]


def test_who_refuses_is_told_at_once() -> None:
    async def ask(client: RemotingClient, _: Replay) -> tuple[Answer, ...]:
        return (
            await client.ask(AT, questions.members("G")),
            await client.ask("no address", questions.members("G")),
            await client.ask("host.invalid:1", questions.members("G")),
        )

    refused, wrong, unknown = run(ask, {AT: Manners(refuses=True)})
    assert (refused.code, refused.remark) == (
        NOT_REACHED,
        f"{AT}: cannot connect: Connection refused",
    )
    assert "expected host:port, came 'no address'" in str(wrong.remark)
    assert unknown.code in (NOT_REACHED, NO_ANSWER)


def test_a_question_is_asked_once_more_where_the_connection_ends() -> None:
    async def ask(client: RemotingClient, replay: Replay) -> tuple[list[int], int]:
        codes = [(await client.ask(AT, questions.members(f"G{n}"))).code for n in range(9)]
        return codes, replay.connections

    # The half of every third answer of a connection: the rest of it is a new connection's first.
    codes, connections = run(ask, {AT: Manners(closes_at=3)})
    assert codes == [0] * 9
    assert connections == 5


def test_who_closes_always_is_given_up() -> None:
    async def ask(client: RemotingClient, replay: Replay) -> tuple[list[Answer], int]:
        return await many(client, 20), replay.connections

    answers, connections = run(ask, {AT: Manners(closes_at=1)})
    assert {answer.code for answer in answers} == {NOT_REACHED}
    assert "closed the connection twice" in str(answers[0].remark)
    assert connections <= 3


@pytest.mark.parametrize(
    "junk",
    [
        pytest.param(lambda data: b"\xff\xff\xff\xff" + data, id="huge length"),
        pytest.param(lambda _: b"\x00\x00\x00\x00", id="no length"),
        pytest.param(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another protocol"),
        pytest.param(lambda data: data[:4] + b"\x07" + data[5:], id="unknown header"),
        pytest.param(lambda data: data[:8] + b"[" + data[9:], id="no JSON"),
    ],
)
def test_what_is_no_frame_ends_the_address_for_the_round(junk: Callable[[bytes], bytes]) -> None:
    async def ask(client: RemotingClient, _: Replay) -> list[Answer]:
        return await many(client, 10)

    answers = run(ask, {AT: Manners(junk=junk)})
    assert {answer.code for answer in answers} <= {NOT_UNDERSTOOD, NOT_REACHED}
    assert any("is no frame" in str(answer.remark) for answer in answers)


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda frame: frame._replace(opaque=frame.opaque + 1000), id="wrong opaque"),
        pytest.param(lambda frame: frame._replace(flag=0), id="a request of the server"),
    ],
)
def test_what_answers_nobody_is_passed_over(change: Callable[[Frame], Frame]) -> None:
    """A server's own requests, and late answers."""
    alone = Manners(junk=lambda data: encode(change(decode(data[4:]))))
    assert run(ask_once, {AT: alone}).code == NO_ANSWER
    before = Manners(junk=lambda data: encode(change(decode(data[4:]))) + data)
    assert run(ask_once, {AT: before}).is_ok


@pytest.mark.long
def test_a_late_answer_is_no_answer_to_the_next_question() -> None:
    def answer(asked: Frame) -> bytes:
        return answer_frame(asked.fields["clientId"].encode())

    async def ask(client: RemotingClient, replay: Replay) -> list[object]:
        late = await client.ask(AT, questions.running_info("G", "late"))
        replay.manners = {}
        await asyncio.sleep(TIMEOUT)
        next_one = await client.ask(AT, questions.running_info("G", "next"))
        return [late.code, next_one.body]

    assert run(ask, {AT: Manners(delay=1.5 * TIMEOUT)}, {AT: answer}) == [NO_ANSWER, b"next"]


def test_a_connection_that_was_idle_for_long_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A firewall that forgot it would cost a round the address."""
    monkeypatch.setattr(client_module, "_IDLE_SECONDS", 0.05)

    async def ask(client: RemotingClient, replay: Replay) -> list[int]:
        connections = []
        for wait in (0, 0, 0.2):
            await asyncio.sleep(wait)
            assert (await client.ask(AT, questions.members("G"))).is_ok
            connections.append(replay.connections)
        return connections

    assert run(ask) == [1, 1, 2]


def test_a_rate_is_kept() -> None:
    async def ask(client: RemotingClient, _: Replay) -> float:
        began = asyncio.get_running_loop().time()
        await many(client, 11)
        return asyncio.get_running_loop().time() - began

    assert run(ask, rate=50.0, timeout_seconds=20) > 0.19


def test_every_request_is_signed_and_no_error_shows_the_secret() -> None:
    account = Account("reader", "top-secret")

    async def ask(client: RemotingClient, replay: Replay) -> tuple[Answer, Frame]:
        return await client.ask(AT, questions.members("G")), replay.requests[0][1]

    answer, asked = run(ask, account=account)
    assert answer.is_ok
    assert asked.fields == account.sign({"consumerGroup": "G"})
    assert "top-secret" not in repr(account)


#: What a server does to the bytes of an answer.
_DAMAGES = st.one_of(
    st.builds(lambda extra: lambda data: extra + data, st.binary(max_size=40)),
    st.builds(lambda extra: lambda data: data + extra, st.binary(max_size=40)),
    st.builds(lambda place: lambda data: data[: place % len(data)], st.integers(0, 1 << 16)),
    st.builds(lambda place: lambda data: data[place % len(data) :], st.integers(0, 1 << 16)),
    st.builds(
        lambda place, byte: (
            lambda data: b"".join(
                (data[: place % len(data)], bytes([byte]), data[place % len(data) + 1 :])
            )
        ),
        st.integers(0, 1 << 16),
        st.integers(0, 255),
    ),
    st.builds(lambda times: lambda data: data * times, st.integers(0, 3)),
)


@pytest.mark.long
@given(st.lists(_DAMAGES, min_size=1, max_size=3))
def test_whatever_comes_each_question_ends_in_time_and_the_next_round_goes_on(
    damages: list[Callable[[bytes], bytes]],
) -> None:
    def damaged(data: bytes) -> bytes:
        for damage in damages:
            data = damage(data) if data else data
        return data

    async def ask(client: RemotingClient, replay: Replay) -> tuple[list[Answer], Answer]:
        answers = await many(client, 6)
        replay.manners = {}
        client.forget()
        return answers, await client.ask(AT, questions.members("next"))

    # `run` waits for so long and no longer; a busy machine may need the time-out to answer.
    answers, after = run(ask, {AT: Manners(junk=damaged)}, timeout_seconds=TIMEOUT)
    assert all(type(answer.code) is int and answer.address == AT for answer in answers)
    assert all(answer.remark for answer in answers if answer.code < 0)
    assert after.is_ok, after


_NOISE = st.lists(
    st.builds(
        lambda code, far, flag, body: encode(Frame(code, 1 << 20 | far, flag=flag, body=body)),
        st.integers(0, 400),
        st.integers(0, 1 << 10),
        st.sampled_from([0, 1, 2, 3]),
        st.binary(max_size=30),
    ),
    max_size=3,
)


@pytest.mark.long
@given(_NOISE, _NOISE, st.booleans(), st.booleans())
def test_each_gets_its_own_answer_whatever_comes_between(
    before: list[bytes], after: list[bytes], dribbles: bool, shuffles: bool
) -> None:
    """Requests of the server, and answers to what nobody asks, in pieces of any size."""

    def name(asked: Frame) -> bytes:
        return answer_frame(asked.fields["consumerGroup"].encode())

    async def ask(client: RemotingClient, _: Replay) -> list[bytes]:
        return [answer.body for answer in await many(client, 8)]

    manners = Manners(
        junk=lambda data: b"".join((*before, data, *after)), dribbles=dribbles, shuffles=shuffles
    )
    expected = [f"G{number}".encode() for number in range(8)]
    assert run(ask, {AT: manners}, {AT: name}, timeout_seconds=20) == expected


LONG = 1 << 20


async def half_an_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Most of a long answer, and never the rest."""
    await reader.read(1)
    writer.write(LONG.to_bytes(4, "big") + b" " * (LONG - 8_192))
    await reader.read()
    writer.close()


def test_answers_that_never_end_do_not_keep_a_long_one_out() -> None:
    honest = b"x" * 400_000

    async def body(client: RemotingClient, replay: Replay) -> list[int]:
        servers = [await asyncio.start_server(half_an_answer, "127.0.0.1", 0) for _ in range(2)]
        addresses = [f"127.0.0.1:{each.sockets[0].getsockname()[1]}" for each in servers]
        client.cluster.connect_to.update({each: each for each in addresses})
        evil = [asyncio.create_task(many(client, 1, each)) for each in addresses]
        await asyncio.sleep(TIMEOUT / 4)
        answers = await many(client, 1)
        await asyncio.gather(*evil)
        for server in servers:
            server.close()
        return [each.code for each in answers]

    answers = {AT: lambda _: answer_frame(honest)}
    assert run(body, answers=answers, most_bytes=LONG) == [0]


def test_long_answers_wait_while_many_bytes_are_not_handled_yet() -> None:
    async def body(client: RemotingClient, _: Replay) -> tuple[list[int], int]:
        first = await at_once(client, 4)
        waiting = asyncio.create_task(at_once(client, 1))
        await asyncio.sleep(TIMEOUT / 4)
        assert not waiting.done()
        for each in first:
            client.handled(each)
        return [each.code for each in await waiting], len(first)

    answers = {AT: lambda _: answer_frame(b"x" * 500_000)}
    assert run(body, answers=answers, most_bytes=LONG) == ([0], 4)


def test_nothing_is_asked_while_many_short_answers_are_not_handled_yet() -> None:
    async def body(client: RemotingClient, replay: Replay) -> tuple[int, list[int]]:
        first = await at_once(client, 12)
        waiting = asyncio.create_task(at_once(client, 1))
        await asyncio.sleep(TIMEOUT / 4)
        asked = len(replay.requests)
        for each in first:
            client.handled(each)
        return asked, [each.code for each in await waiting]

    answers = {AT: lambda _: answer_frame(b"x" * 200_000)}
    assert run(body, answers=answers, most_bytes=LONG) == (12, [0])


def test_a_system_without_threads_is_a_name_that_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_: object) -> None:
        raise RuntimeError("can't start new thread")

    async def body(client: RemotingClient, _: Replay) -> list[Answer]:
        monkeypatch.setattr(engines.Thread, "start", start)
        return await many(client, 1, "broker.example:10911")

    (answer,) = run(body)
    assert answer.code == NOT_REACHED
    assert "can't start new thread" in str(answer.remark)
