"""Each service gets what it takes; its errors are seen whatever it answers; names stay text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.alerts.alerting import (
    SECRET_VARIABLE,
    SERVICES,
    WEBHOOK_VARIABLE,
    WITH_MENTIONS,
    ReadyDestination,
    find_destination,
    service_at,
)
from jobs.alerts.services.chats import document, signed
from jobs.alerts.services.pagerduty import incident_key
from jobs.alerts.services.service import Access, Attempts, DeliveryError, inert, json_bytes
from jobs.alerts.services.text_message import Cause, Item, Message
from jobs.config.settings import Alerts
from jobs.reports.run_findings import PlaceFinding
from jobs.reports.tables import Place
from tests.support import services
from tests.support.services import SIGNING_SECRET, TOKEN, Fake, fake

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ALL = sorted(services.SERVICES)
#: Those whose answer to a message that they did not take may be 200.
WITH_CODES = {"DINGTALK": "errcode", "FEISHU": "code", "WECOM": "errcode"}


def finding(queue_id: int = 0, **values: Any) -> PlaceFinding:
    of_queue: dict[str, Any] = {
        "place": Place("C", "G", "T"),
        "ids": (f"id-{queue_id}",),
        "kind": "ORPHANED",
        "queues": (("broker-a", queue_id),),
        "severity": "CRITICAL",
        "persistence": "PERSISTENT",
        "ongoing": True,
        "status": "NEW",
        "certainty": "CERTAIN",
        "known_issue": None,
        "causes": ("GHOST_MEMBER",),
        "first_seen": NOON,
        "last_seen": NOON,
    }
    over_time = {"share_of_time": 1.0, "open_since": None, "nights_open": None}
    return PlaceFinding(**{**of_queue, **over_time, **values})


def message(name: str = "G / T (C)", number: int = 1, explanation: str = "because") -> Message:
    told = ("CRITICAL", True, name, (f"GHOST_MEMBER: {explanation}",))
    places = [Place("C", "G", f"T{n}") for n in range(number)]
    problems = tuple(Item(place, *told, (finding(n),)) for n, place in enumerate(places))
    heading, causes = "Rebalance audit of 2026-11-20: found", tuple(map(Cause.of_one, problems))
    return Message("2026-11-20", "run-1", heading, problems, causes=causes)


@contextmanager
def fake_of(name: str, *answers: services.Answer) -> Iterator[Fake]:
    """The service as a fake, which answers so at first."""
    rules, path, _ = services.SERVICES[name]
    with fake(rules, path) as service:
        service.answers = list(answers)
        yield service


@pytest.fixture
def service(name: str) -> Iterator[Fake]:
    with fake_of(name) as service:
        yield service


def ready(name: str, service: Fake, secret: str = SIGNING_SECRET) -> ReadyDestination:
    environment = {WEBHOOK_VARIABLE: service.url, SECRET_VARIABLE: secret}
    return find_destination(Alerts(service=name), environment, pytest.fail)  # type: ignore[arg-type]


def deliver(name: str, service: Fake, sent: Message, secret: str = SIGNING_SECRET) -> list[float]:
    """Delivers the message; the pauses between the attempts."""
    pauses: list[float] = []
    now = datetime.now(UTC)
    ready(name, service, secret).deliver(sent, now, Attempts(60, 3, pauses.append))
    return pauses


each_service = pytest.mark.parametrize("name", ALL)


@each_service
def test_a_service_takes_the_message(name: str, service: Fake) -> None:
    assert deliver(name, service, message()) == []
    assert len(service.posted) == 1
    text = json.dumps(service.bodies, ensure_ascii=False)
    assert "G / T (C)" in text
    assert "because" in text
    # The robots of some chats may be set to take messages with a keyword alone.
    assert "Rebalance audit" in text or name == "PAGERDUTY"


@pytest.mark.long
@each_service
def test_the_longest_message_fits_into_what_a_service_takes(name: str, service: Fake) -> None:
    """50 groups, as many as the settings allow, whose names and evidence need four bytes each."""
    called = tuple(f"U{n:029}" for n in range(20)) if name in WITH_MENTIONS else ()
    long = replace(message("\U0001f525" * 600, 50, "\U0001f525" * 400), mentions=called)
    deliver(name, service, long)
    assert len(service.posted) == (50 if name == "PAGERDUTY" else 1)


@each_service
def test_what_the_service_refuses_is_an_error_without_its_url(name: str, service: Fake) -> None:
    refusal = (400, {}, f"you called {TOKEN}")
    if name in WITH_CODES:
        refusal = (200, {}, json.dumps({WITH_CODES[name]: 40035, "errmsg": TOKEN, "msg": TOKEN}))
    service.answers = [refusal]
    with pytest.raises(DeliveryError) as raised:
        deliver(name, service, message())
    assert len(service.posted) == 1
    assert "s3cr3t" not in str(raised.value)
    assert SIGNING_SECRET not in str(raised.value)
    assert ("error code 40035" in str(raised.value)) == (name in WITH_CODES)


@each_service
def test_what_may_pass_is_tried_again(name: str, service: Fake) -> None:
    service.answers = [(503, {}, ""), (429, {"Retry-After": "7"}, "")]
    assert deliver(name, service, message()) == [1.0, 7.0]
    assert len(service.posted) == 3


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("DINGTALK", {"errcode": 130101, "errmsg": "send too fast"}),
        ("DINGTALK", {"errcode": -1, "errmsg": "system busy"}),
        ("FEISHU", {"code": 11232, "msg": "frequency limited", "data": {}}),
        ("FEISHU", {"StatusCode": 11232, "StatusMessage": "frequency limited"}),
        ("WECOM", {"errcode": 45009, "errmsg": "api freq out of limit"}),
    ],
)
def test_a_code_in_a_200_that_is_a_limit_of_messages_is_tried_again(
    name: str, service: Fake, answer: dict[str, Any]
) -> None:
    service.answers = [(200, {}, json.dumps(answer))]
    assert deliver(name, service, message()) == [30.0]
    assert len(service.posted) == 2


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("SLACK", (404, {}, "no_service")),
        ("SLACK", (200, {}, "<html>log in first</html>")),
        ("DINGTALK", (200, {}, '{"errcode": 310000, "errmsg": "keywords not in content"}')),
        ("DINGTALK", (200, {}, "")),
        ("DINGTALK", (200, {}, '{"errcode": "0"}')),
        ("DINGTALK", (200, {}, '{"errcode": false}')),
        ("FEISHU", (200, {}, '{"code": 19024, "msg": "Key Words Not Found"}')),
        ("FEISHU", (400, {}, '{"code": 9499, "msg": "Bad Request"}')),
        ("FEISHU", (200, {}, '{"StatusCode": 1}')),
        ("WECOM", (200, {}, '{"errcode": 93000, "errmsg": "invalid webhook url"}')),
        ("WECOM", (200, {}, "<html>log in first</html>")),
        ("TEAMS", (200, {}, "Webhook message delivery failed with error: HTTP error 403")),
        ("TEAMS", (401, {}, "")),
        ("PAGERDUTY", (400, {}, '{"status": "invalid event"}')),
        ("PAGERDUTY", (202, {}, "")),
        ("JSON", (200, {}, '{"ok": false, "error": "not_in_channel"}')),
        ("JSON", (200, {}, '{"success": false}')),
        ("JSON", (200, {}, '{"errcode": 310000}')),
        ("JSON", (302, {"Location": "/elsewhere"}, "")),
    ],
)
def test_whatever_else_a_service_answers_is_no_delivery(name: str, answer: services.Answer) -> None:
    with fake_of(name, answer) as service, pytest.raises(DeliveryError):
        deliver(name, service, message())
    assert len(service.posted) == 1


@pytest.mark.parametrize(
    ("name", "answer"),
    [("FEISHU", '{"StatusCode": 0}'), ("JSON", '{"ok": true}'), ("JSON", "thanks")],
)
def test_the_other_forms_of_a_success_are_one(name: str, answer: str) -> None:
    with fake_of(name, (200, {}, answer)) as service:
        assert deliver(name, service, message()) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("DINGTALK", "error code 310000: the robot's security settings refuse it"),
        ("FEISHU", "error code 19021: the signature does not match"),
        ("PAGERDUTY", "HTTP status 400: the event is not valid; check the routing key"),
    ],
)
def test_a_wrong_secret_is_refused_and_said(name: str, said: str) -> None:
    with fake_of(name) as service, pytest.raises(DeliveryError, match=said):
        deliver(name, service, message(), secret="another one")  # noqa: S106


def test_the_signature_of_dingtalk_goes_into_the_url_and_without_a_secret_there_is_none() -> None:
    url = signed("https://oapi.dingtalk.com/robot/send?access_token=x", "SEC", NOON)
    base, _, sign = url.partition("&sign=")
    assert base == "https://oapi.dingtalk.com/robot/send?access_token=x&timestamp=1795176000000"
    # openssl dgst -sha256 -hmac SEC -binary | base64, of the time, a line feed and the secret.
    assert sign == "f1TBcfIeEMw0VPuwCFdsW71SC7givpQ5xAQraHXivv8%3D"
    assert signed("https://x", "", NOON) == "https://x"
    assert "?timestamp=" in signed("https://x", "SEC", NOON)


def test_the_signature_of_feishu_goes_into_the_body_and_without_a_secret_there_is_none() -> None:
    (signed_one,) = SERVICES["FEISHU"].requests(message(), Access("https://x", "SEC"), NOON)
    assert signed_one.body["timestamp"] == "1795176000"
    # openssl dgst -sha256 -hmac KEY -binary | base64, of nothing; time and secret are the key.
    assert signed_one.body["sign"] == "NiC6W3kw+z+poUEbZRnPEczPtQ8Lo8ELoofPdIQBij0="
    (plain,) = SERVICES["FEISHU"].requests(message(), Access("https://x"), NOON)
    assert not {"timestamp", "sign"} & set(plain.body)


# ---------------------------------------------------------------- names stay text

HOSTILE = (
    "<!channel> <@U1> <https://evil.example|G> [G](https://evil.example) *b* _i_ ~s~ `c` "
    '<at user_id="all">all</at> @all @here <font color="warning">w</font> {{DATE(2020,SHORT)}} '
    "https://evil.example ``` www.evil.example"
)


def posted(name: str, sent: Message) -> Any:
    (request,) = SERVICES[name].requests(sent, Access("https://x", "secret"), NOON)
    return request.body


def test_in_slack_names_are_in_text_elements_alone() -> None:
    body = posted("SLACK", message(HOSTILE))
    assert HOSTILE not in body["text"]
    (block,) = body["blocks"]
    (section,) = block["elements"]
    assert (block["type"], section["type"]) == ("rich_text", "rich_text_section")
    assert {each["type"] for each in section["elements"]} == {"text"}
    assert f"\n• {inert(HOSTILE)}" in [each["text"] for each in section["elements"]]
    assert "style" not in section["elements"][-1]


def test_in_feishu_names_are_in_text_elements_alone() -> None:
    (post,) = posted("FEISHU", message(HOSTILE))["content"]["post"].values()
    elements = [each for paragraph in post["content"] for each in paragraph]
    assert {each["tag"] for each in elements} == {"text"}
    assert "evil" not in post["title"]


def test_in_teams_names_are_in_text_runs_that_read_no_markdown() -> None:
    (attachment,) = posted("TEAMS", message(HOSTILE))["attachments"]
    blocks = attachment["content"]["body"]
    assert {each["type"] for each in blocks} == {"RichTextBlock"}
    assert {run["type"] for each in blocks for run in each["inlines"]} == {"TextRun"}
    assert "{{" not in json.dumps(blocks)


@pytest.mark.parametrize("name", ["DINGTALK", "WECOM"])
def test_in_dingtalk_and_wecom_the_message_is_plain_text_that_calls_nobody(name: str) -> None:
    body = posted(name, message(HOSTILE))
    assert body["msgtype"] == "text"
    nobody = {"isAtAll": False, "atMobiles": [], "atUserIds": []}
    assert body.get("at", nobody) == nobody
    assert not body["text"].get("mentioned_list")
    assert not body["text"].get("mentioned_mobile_list")
    called = ("https://", "@all", "@here")
    assert [each for each in called if each in body["text"]["content"]] == []


def test_in_json_names_are_exact_and_the_text_for_a_chat_has_them_between_marks() -> None:
    body = document(message(HOSTILE))
    assert body["problems"][0]["summary"] == HOSTILE
    heading, opening, *_, closing = body["text"].split("\n")
    assert (opening, closing) == ("```", "```")
    assert "evil" not in heading
    assert body["text"].count("```") == 2


LINK = "https://audit.example/dt=2026-11-20.html#G/%25RETRY%25G"


def test_where_a_link_is_an_element_of_its_own_the_place_on_the_page_is_one() -> None:
    item = replace(message().items[0], url=LINK)
    sent = replace(message(), items=(item,), causes=(Cause.of_one(item),))
    (block,) = posted("SLACK", sent)["blocks"]
    assert {"type": "link", "url": LINK} in block["elements"][0]["elements"]
    (post,) = posted("FEISHU", sent)["content"]["post"].values()
    assert [{"tag": "a", "text": f"    {LINK}", "href": LINK}] in post["content"]
    (attachment,) = posted("TEAMS", sent)["attachments"]
    runs = [run for each in attachment["content"]["body"] for run in each["inlines"]]
    assert [run["selectAction"]["url"] for run in runs if "selectAction" in run] == [LINK]
    assert LINK in posted("WECOM", sent)["text"]["content"]


@given(st.text())
def test_plain_text_calls_nobody_and_loses_nothing(text: str) -> None:
    shown = inert(text)
    assert not re.search(r"@(all|channel|everyone|here|所有人)(?!\w)", shown, re.IGNORECASE)
    assert not re.search(r"://|<[!@#]", shown)
    assert shown.replace("\u200b", "") == text.replace("\u200b", "")


# ---------------------------------------------------------------- who is called


def calling(*mentions: str) -> Message:
    return replace(message(), mentions=mentions)


def test_slack_calls_users_and_user_groups() -> None:
    (block,) = posted("SLACK", calling("U024BE7LH", "S0614TZR7"))["blocks"]
    *_, user, _, group = block["elements"][0]["elements"]
    assert user == {"type": "user", "user_id": "U024BE7LH"}
    assert group == {"type": "usergroup", "usergroup_id": "S0614TZR7"}


def test_feishu_calls_people() -> None:
    (post,) = posted("FEISHU", calling("ou_1", "ou_2"))["content"]["post"].values()
    called = [{"tag": "at", "user_id": each} for each in ("ou_1", "ou_2")]
    assert post["content"][-1] == called


def test_dingtalk_and_wecom_call_people_by_user_id_or_mobile_number() -> None:
    sent = calling("manager42", "13800000000")
    body = posted("DINGTALK", sent)
    called = {"atMobiles": ["13800000000"], "atUserIds": ["manager42"]}
    assert body["at"] == {"isAtAll": False, **called}
    assert body["text"]["content"].endswith("\n@manager42\n@13800000000")
    text = posted("WECOM", sent)["text"]
    assert text["mentioned_list"] == ["manager42"]
    assert text["mentioned_mobile_list"] == ["13800000000"]


# ---------------------------------------------------------------- incidents


def test_pagerduty_has_an_incident_for_each_group_and_topic() -> None:
    sent = message(number=2)
    access = Access("https://x", "key")
    first, second = SERVICES["PAGERDUTY"].requests(sent, access, NOON)
    assert first.body["event_action"] == "trigger"
    assert first.body["dedup_key"] == incident_key(("C", "G", "T0"))
    assert first.body["dedup_key"] != second.body["dedup_key"]
    payload = first.body["payload"]
    assert (payload["source"], payload["group"], payload["component"]) == ("C", "G", "T0")
    assert payload["severity"] == "critical"
    assert payload["timestamp"] == "2026-11-20T12:00:00.000Z"
    assert payload["custom_details"]["findings"][0]["queue"] == "broker-a 0"


def test_pagerduty_gets_one_incident_for_groups_left_out_and_what_is_resolved() -> None:
    sent = Message("2026-11-20", "run", "Audit", (), 7, resolved=(("C", "G", "T"),))
    others, resolved = SERVICES["PAGERDUTY"].requests(sent, Access("https://x", "key"), NOON)
    assert others.body["event_action"] == "trigger"
    assert "7" in others.body["payload"]["summary"]
    assert resolved.body == {
        "routing_key": "key",
        "event_action": "resolve",
        "dedup_key": incident_key(Place("C", "G", "T")),
    }


def test_names_of_any_length_make_an_event_that_pagerduty_takes() -> None:
    place = Place("", "g" * 9000, "t" * 9000)
    item = Item(place, "INFO", True, "s" * 9000, (), (finding(),) * 9000)
    sent = Message("2026-11-20", "run", "Audit", (item,), 0)
    (request,) = SERVICES["PAGERDUTY"].requests(sent, Access("x", SIGNING_SECRET), NOON)
    assert len(json_bytes(request.body)) < 512_000
    event = services.Posted("", {}, request.body, len(json_bytes(request.body)))
    assert services.pagerduty(event)[0] == 202


# ---------------------------------------------------------------- which service


@pytest.mark.parametrize(
    ("name", "hosts"),
    [
        ("SLACK", ["hooks.slack.com", "HOOKS.SLACK.COM."]),
        ("DINGTALK", ["oapi.dingtalk.com"]),
        ("FEISHU", ["open.feishu.cn", "open.larksuite.com"]),
        ("WECOM", ["qyapi.weixin.qq.com"]),
        ("TEAMS", ["prod-01.westeurope.logic.azure.com:443"]),
        ("TEAMS", ["default1.environment.api.powerplatform.com"]),
        ("PAGERDUTY", ["events.eu.pagerduty.com"]),
        ("JSON", ["hooks.slack.com.evil.example", "evilhooks.slack.com"]),
        ("JSON", ["chat.example.org", "[::1]"]),
    ],
)
def test_the_host_says_which_service_it_is(name: str, hosts: list[str]) -> None:
    for host in hosts:
        assert service_at(f"https://{host}/x?y=hooks.slack.com") == name


def test_every_service_has_a_fake_that_answers_as_it_does() -> None:
    assert {*SERVICES} == {*services.SERVICES}


def test_the_text_of_the_json_is_as_long_as_a_chat_shows() -> None:
    assert len(document(message("x" * 300, 50))["text"]) <= 4800
