"""The lines of a round: who brings little waits for nobody, and who is stopped writes no more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jobs.collect.client import OK, Answer
from jobs.collect.lines import RoundLines
from jobs.collect.questions import route
from tests.support.asking import client_of

MANY = b"x" * (2 << 20)


def with_lines(
    write: Callable[[dict[str, Any]], None], body: Callable[[RoundLines], Coroutine[Any, Any, None]]
) -> None:
    async def run() -> None:
        client = client_of(lambda: 0)
        with ThreadPoolExecutor(1) as worker:
            lines = RoundLines(0, write, client, {}, worker)
            for _ in range(3):
                lines.add(route("T"), "C", Answer("a:1", OK, None, MANY, 0))
            await asyncio.wait_for(body(lines), 20)

    asyncio.run(run())


def test_who_brings_little_does_not_wait_until_others_are_written() -> None:
    is_let, began = threading.Event(), threading.Event()

    def write(_: dict[str, Any]) -> None:
        began.set()
        is_let.wait(10)

    async def body(lines: RoundLines) -> None:
        much = asyncio.create_task(lines.make_room(len(MANY)))
        while not began.is_set():
            await asyncio.sleep(0.01)
        lines.add(route("T"), "C", Answer("a:1", OK, None, MANY, 0))
        await asyncio.wait_for(lines.make_room(100), 5)
        assert not much.done()
        is_let.set()
        await much

    with_lines(write, body)


def test_a_round_that_is_stopped_does_not_write_what_it_has() -> None:
    written: list[str] = []
    began, is_let = threading.Event(), threading.Event()

    def write(line: dict[str, Any]) -> None:
        began.set()
        is_let.wait(10)
        written.append(line["kind"])

    async def body(lines: RoundLines) -> None:
        flushing = asyncio.create_task(lines.flush())
        while not began.is_set():
            await asyncio.sleep(0.01)
        flushing.cancel()
        await asyncio.wait([flushing])
        is_let.set()

    with_lines(write, body)
    assert written == ["topic_route"]
