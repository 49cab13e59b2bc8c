"""explain, what-if and the message of each service in a language: nothing in it is English."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from gzip import decompress
from pathlib import Path
from typing import Any

import pytest

from jobs.alerts.alerting import SERVICES
from jobs.alerts.message import Digest, make_message, problems_to_send, read_digest
from jobs.alerts.services.mail import mail_of
from jobs.alerts.services.service import Access
from jobs.alerts.services.text_message import OTHERS, Message
from jobs.config.choices import LANGUAGES
from jobs.config.masking import Masking
from jobs.config.settings import Alerts, Email, Settings
from jobs.judge.moment import Moment
from jobs.languages.language import language
from jobs.pipeline.moments import MomentQuestion, explain_moment, moments_of_dumps, predict_moments
from jobs.reports.table_text import read_table
from jobs.reports.tables import PublishedTables
from jobs.storage import Reports
from rebalance_core import (
    Change,
    ChangeError,
    leave,
    remove_broker,
    separate_ids,
    subscribe_all,
    use_strategy,
)
from tests.languages.english_left import english_in

DATA = Path(__file__).parent.parent / "data"
DUMPS = sorted((DATA).glob("*/*/dump.jsonl.gz"))
CHINESE = Settings(persistence_seconds=60, language="zh")
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@cache
def groups(dump: Path) -> tuple[tuple[Moment, ...], ...]:
    """By group the last moment of each of its topics."""
    text = decompress(dump.read_bytes()).decode()
    names = re.findall(r'"consumer_group": ?"([^"]+)"', text)
    return tuple(
        tuple(moments_of_dumps([str(dump)], MomentQuestion(name, None), CHINESE))
        for name in sorted(set(names))
    )


def names(moments: Sequence[Moment]) -> set[str]:
    """What the dumps name, as it is shown."""
    every = {moment.cluster for moment in moments}
    for state in (moment.state for moment in moments):
        every |= {state.consumer_group, state.topic}
        every |= {each.client_id for each in state.members}
        every |= {each.strategy for each in state.members if each.strategy}
        every |= {entry.broker_name for entry in state.client_lists}
        every |= {name for name, _ in state.offline_brokers}
        for route in state.topic_routes:
            every |= {route.namesrv_addr, *(each.broker_name for each in route.brokers)}
    masking = Masking()
    return every | set(map(masking.mask, every))


@pytest.mark.long
@pytest.mark.parametrize("dump", DUMPS[::6], ids=lambda each: each.parent.name)
def test_explain_in_chinese_has_no_english_left(dump: Path) -> None:
    assert groups(dump)
    for moments in groups(dump):
        named = names(moments)
        for moment in moments:
            text = explain_moment(moment, CHINESE)
            assert english_in(text, named) == set()
            assert "谁消费什么" in text


def changes(moments: Sequence[Moment]) -> Iterator[list[Change]]:
    yield [separate_ids()]
    yield [subscribe_all(), use_strategy("AVG_BY_CIRCLE")]
    ids = {each.client_id for m in moments for of in m.state.client_lists for each in of.members}
    brokers = {
        each.broker_name for m in moments for r in m.state.topic_routes for each in r.brokers
    }
    if ids:
        yield [leave(min(ids)), separate_ids()]
    if brokers:
        yield [remove_broker(min(brokers))]


@pytest.mark.long
@pytest.mark.parametrize("dump", DUMPS[::8], ids=lambda each: each.parent.name)
def test_what_if_in_chinese_has_no_english_left(dump: Path) -> None:
    answers = 0
    for moments in groups(dump):
        named = names(moments)
        for asked in changes(moments):
            # Of one topic the answer has other sentences than of several.
            for number in {len(moments), 1}:
                with suppress(ChangeError):
                    text = predict_moments(moments[:number], asked, CHINESE).text
                    assert english_in(text, named) == set()
                    assert "如果：" in text
                    answers += 1
    assert answers


# ------------------------------------------------------------------ alerts


@pytest.fixture(scope="module")
def message(audited: Reports) -> Message:
    return message_of(audited, Alerts(groups_shown=2))


def message_of(audited: Reports, alerts: Alerts) -> Message:
    found = digest_of(audited)
    return make_message(found, problems_to_send(found, alerts, {}), alerts, language("zh"), {})


def digest_of(audited: Reports) -> Digest:
    published = audited.resolve(None)
    return read_digest(published, PublishedTables(audited, published))


@pytest.fixture(scope="module")
def named(audited: Reports) -> set[str]:
    """What the reports name."""
    published = audited.resolve(None)
    rows = [
        row
        for table in ("group_faults", "group_health", "stacked_client_ids")
        for row in read_table(audited, published, table).to_pylist()
    ]
    every = {each for row in rows for name in row for each in names_of(name, row[name])}
    return every | {name for each in digest_of(audited).findings for name, _ in each.queues}


def names_of(column: str, value: Any) -> set[str]:
    if column in ("evidence", "remedy", "reason", "texts"):
        return set()
    if isinstance(value, list):
        return {each for part in value for each in names_of(column, part)}
    return {value} if isinstance(value, str) else set()


@pytest.mark.long
def test_a_message_in_chinese_has_no_english_left(named: set[str], message: Message) -> None:
    assert len(message.items) == 2
    assert message.left_out
    explanations = [why for each in message.items for why in each.explanations]
    assert len(explanations) >= 4
    for line in (*message.lines, *(each.summary for each in message.items), *explanations):
        assert english_in(line, named) == set(), line


def test_the_heading_has_the_keyword_of_robots_in_every_language(message: Message) -> None:
    """A robot that is set to take messages with a keyword alone takes every language."""
    assert message.heading.startswith("Rebalance audit 2026-11-21")
    assert "新问题" in message.heading


def test_that_there_is_nothing_is_said_in_the_language(audited: Reports) -> None:
    found = digest_of(audited)
    told = [
        make_message(found, (), Alerts(send=send), language("zh"), {}).heading
        for send in ("NEW", "ALWAYS")
    ]
    headings = [each.partition("：")[2].partition("；") for each in told]
    assert [each[0] for each in headings] == ["没有新问题", "没有未恢复的问题"]
    assert {each[2] for each in headings} == {"并非全部都已读取并审计"}


def texts(value: Any) -> Iterator[str]:
    """The values with a blank or a Chinese character: the others are codes of the service."""
    if isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str) and re.search(r"[ \u4e00-\u9fff]", value):
        yield value


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_gets_the_language(name: str, named: set[str], message: Message) -> None:
    requests = SERVICES[name].requests(message, Access("https://x", "secret"), NOON)
    posted = [text for request in requests for text in texts(request.body)]
    assert any("修复：" in text for text in posted)
    assert any("无人消费" in text for text in posted)
    for text in posted:
        assert english_in(text, named) == set(), text


def test_a_mail_has_the_language_in_its_subject_and_its_text(message: Message) -> None:
    email = Email(host="mail.example.org", sender="a@example.org", recipients=("b@example.org",))
    mail = mail_of(message, email, NOON)
    assert str(mail["Subject"]) == message.heading
    assert "修复：" in mail.get_content()


@pytest.mark.parametrize("code", LANGUAGES)
def test_feishu_calls_the_language_by_its_name_for_it(code: str, message: Message) -> None:
    sent = replace(message, language=language(code))
    (request,) = SERVICES["FEISHU"].requests(sent, Access("https://x"), NOON)
    named = {"en": "en_us", "zh": "zh_cn"}
    assert list(request.body["content"]["post"]) == [named[code]]


def test_the_groups_that_pagerduty_gets_together_are_counted_in_the_language(
    message: Message,
) -> None:
    events = [each.body for each in SERVICES["PAGERDUTY"].requests(message, Access("x", "k"), NOON)]
    of_others, of_missing = (each["payload"] for each in events[-2:])
    assert of_missing["summary"] == message.missing
    assert message.missing.startswith("不完整：")
    assert OTHERS not in {each.place for each in message.items}
    assert of_others["summary"] == (
        f"{message.heading}：其中 {message.left_out} 个没有单独的告警事件"
    )


def test_json_names_the_language_and_keeps_its_keys(message: Message) -> None:
    (request,) = SERVICES["JSON"].requests(message, Access("https://x"), NOON)
    assert request.body["language"] == "zh"
    assert request.body["problems"][0]["findings"][0]["kind"] in {"ORPHANED", "DUPLICATE"}
