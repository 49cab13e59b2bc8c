"""The page: sound HTML that fetches nothing, can be read by everybody, and shows ids as text."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import __version__
from jobs.languages.language import ENGLISH, language
from jobs.rendering.page import FindingPages, to_html, to_markdown
from jobs.rendering.page_values import PageValues, build_report
from rebalance_core.english import within
from rebalance_core.texts import Text, encode
from tests.support.html import Page
from tests.support.published import (
    RowTables,
    fault,
    finding,
    health,
    minute,
    published,
    two_processes_share_one_client_id,
)

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "{{ 7 * 7 }}{% raw %}",
    "</style><style>*{display:none}",
    "\u202egnp.exe",
    "a\nb\r\tc\x00",
    "]]><!--",
    "javascript:alert(1)",
    "=cmd|' /C calc'!A0",
    "`|a|` *b* [c](http://d.example) @all &amp; <e>",
)


def report(top: int = 10, **tables: list[dict[str, Any]]) -> PageValues:
    return build_report(published(), RowTables(**tables), top)


def html_of(top: int = 10, **tables: list[dict[str, Any]]) -> str:
    """The page of these tables, of a group that is well otherwise."""
    return to_html(report(top, **{"group_health": [health()]} | tables), "r")


def ticket(told: PageValues, top: int = 10, pages: str | None = None, reports: str = "r") -> str:
    return to_markdown(told, reports, pages, ENGLISH, top)


def cards_of(html: str) -> list[str]:
    return re.findall("<article.*?</article>", html, re.DOTALL)


def full_report(name: str = "G") -> PageValues:
    """Every section has something in it, and every name in it is ``name``."""
    tables = two_processes_share_one_client_id(consumer_group=name)
    tables["allocations"] = [{**row, "client_id": name} for row in tables["allocations"]]
    texts = {"evidence": name, "remedy": name}
    tables["group_faults"] = [row | texts for row in tables["group_faults"]]
    tables["orphaned_queues"] += [
        finding(topic="known", known_issue=name, consumer_group=name),
        finding(topic="passed", severity="INFO", persistence="TRANSIENT", ongoing=False),
        finding(topic=name, severity="WARNING", status="PERSISTING", broker_name=name),
    ]
    former = finding(topic=name, consumer_group=name, kind="ORPHANED", status="RESOLVED")
    tables["former_findings"] = [former, {**former, "status": "NOT_AUDITED", "topic": "gone"}]
    tables["unreadable_queues"] = [finding(consumer_group=name, topic=name)]
    tables["quarantine"] = [{"reason": name, "file": name}]
    tables["group_health"] += [
        health(consumer_group=name, topic="other", completeness=0.5),
        health(consumer_group="x", coverage="NO_BROKER_ANSWERED", reason=name, cluster=name),
    ]
    previous = {"date": "2026-11-19", "run_id": "run-0"}
    ingested = {"lines": 1000, "quarantined": 1}
    run = published(previous=previous, inputs={"snapshots": "snapshots", "ingested": ingested})
    return build_report(run, RowTables(**tables), 10)


@cache
def full_page() -> str:
    pages = FindingPages.of_this_installation(ENGLISH)
    return to_html(full_report(), "out/reports", "https://docs.example/findings", pages)


def test_a_person_on_call_sees_first_whether_anything_is_wrong() -> None:
    page = Page(full_page())
    assert page.texts["title"][0] == "CRITICAL: rebalance audit of 2026-11-20"
    assert page.texts["h2"][0] == "Something is wrong"
    verdict = " ".join(page.texts["section"][0].split())
    assert "2 topics of 1 group have lasting faults, 1 critical." in verdict
    assert "2 queues consumed by nobody and 2 consumed by several" in verdict


def test_with_nothing_wrong_it_says_so() -> None:
    passed = finding(severity="INFO", persistence="TRANSIENT", ongoing=False)
    for rows, heading in (([], "All is well"), ([passed], "Nothing lasting is wrong")):
        assert Page(html_of(orphaned_queues=rows)).texts["h2"][0] == heading


@pytest.mark.parametrize("window", [{}, {"first_snapshot": None, "last_snapshot": None}])
def test_a_run_without_snapshots_has_a_page_that_says_so(window: dict[str, Any]) -> None:
    empty = build_report(published(window=window), RowTables(), 10)
    assert ">0 clusters, no snapshots<" in to_html(empty, "r")
    assert "No snapshots" in ticket(empty)


def test_how_many_groups_rest_on_an_assumption_is_said_with_what_to_collect() -> None:
    def page(**assumptions: int) -> str:
        run = published(assumptions=assumptions)
        tables = RowTables(group_health=[health()])
        return " ".join(to_html(build_report(run, tables, 10), "r").split())

    collect, asked = "Collect running infos of all members", "some did not answer"
    for number, said in ((0, [True, False]), (5, [True, True]), (12, [False, True])):
        shown = page(groups=12, asked=number, strategy=12, subscriptions=3)
        assert "12 groups rest on an assumption" in shown
        assert [collect in shown, f"For {number} the members were asked" in shown] == said
        assert (asked in shown) == said[1]
    assert "rest on an assumption" not in page(groups=0, asked=0, strategy=0, subscriptions=0)


def test_a_known_issue_is_told_with_its_reason_and_not_in_the_verdict() -> None:
    html = html_of(orphaned_queues=[finding(known_issue="OPS-1: moved next week")])
    page = Page(html)
    assert page.texts["h2"][0] == "All is well"
    assert "OPS-1: moved next week" in html
    assert "Known issues" in page.texts["h3"]


def test_new_persisting_and_resolved_findings_are_told_apart() -> None:
    page = Page(full_page())
    titles = [text.split(":")[0] for text in page.texts["h3"]]
    assert [each for each in titles if each.isupper()] == ["NEW", "PERSISTING"]
    assert {"RESOLVED", "NOT AUDITED"} <= set(page.texts["span"])


def test_headings_descend_one_by_one() -> None:
    levels = [int(tag[1]) for tag, _ in Page(full_page()).elements if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert set(levels) >= {1, 2, 3, 4, 5}
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_landmarks_are_named_and_ids_are_unique() -> None:
    page = Page(full_page())
    for landmark in ("header", "nav", "main", "footer"):
        assert len(page.all(landmark)) == 1, landmark
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for section in page.all("section"):
        assert section["aria-labelledby"] in ids
    links = [link["href"] for link in page.all("a")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert page.all("html") == [{"lang": "en"}]


def test_pictures_have_a_title_and_say_what_they_show() -> None:
    page = Page(full_page())
    pictures = [svg for svg in page.all("svg") if svg.get("aria-hidden") != "true"]
    assert len(pictures) >= 3
    texts = [each for tag, each in page.elements if tag in ("title", "desc")]
    named = {each["id"] for each in texts if "id" in each}
    for picture in pictures:
        assert picture["role"] == "img"
        assert set(picture["aria-labelledby"].split()) <= named
    assert all(text.strip() for text in page.texts["desc"])
    assert {"1x2", "✕ nobody", "●", "broker-a 3"} <= set(page.texts["text"])


def test_tables_have_captions_and_heads_with_a_scope() -> None:
    page = Page(full_page())
    assert len(page.all("caption")) == len(page.all("table")) >= 9
    assert {head.get("scope") for head in page.all("th")} == {"col", "row"}
    regions = [each for each in page.all("div") if each.get("class") == "scroll"]
    assert all(each["tabindex"] == "0" and each["aria-label"] for each in regions)


def test_the_page_fetches_nothing_and_runs_its_own_script_alone() -> None:
    page = Page(full_page())
    for tag in ("img", "iframe", "object", "embed", "form", "base"):
        assert not page.all(tag), tag
    assert [link["href"] for link in page.all("link")] == ["data:,"]
    (script,) = page.texts["script"]
    own = b64encode(sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; style-src 'unsafe-inline'; "
    policy += f"script-src 'sha256-{own}'; img-src data:"
    assert policy in [each.get("content", "") for each in page.all("meta")]
    assert not set(re.findall(r"innerHTML|insertAdjacent|eval|fetch|XMLHttp|import", script))
    assert {"name": "referrer", "content": "no-referrer"} in page.all("meta")
    for _, attributes in page.elements:
        forbidden = {"src", "srcset", "style", "xlink:href"}
        assert not [each for each in attributes if each.startswith("on") or each in forbidden]
    (style,) = page.texts["style"]
    assert set(re.findall(r"url\(([^)]*)\)", style)) == {"#hatch-orphaned", "#hatch-duplicate"}
    assert "@import" not in style
    external = {link["href"] for link in page.all("a") if not link["href"].startswith("#")}
    assert external
    assert all(link.startswith("https://docs.example/findings/") for link in external)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_text(name: str) -> None:
    html = to_html(full_report(name), f"out/{name}")
    page, plain = Page(html), Page(full_page())
    assert [tag for tag, _ in page.elements if tag not in ("bdi", "a", "text", "title", "path")]
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in plain.elements}
    assert len(page.all("style")) == 1
    assert "\u202e" not in html
    assert "\x00" not in html
    assert "49{%" not in html
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    assert shown in page.texts["bdi"]
    assert not {link["href"] for link in page.all("a") if not link["href"].startswith("#")}


def _pairs() -> list[tuple[str, str]]:
    """Which colour of text lies on which ground."""
    plain = [(text, ground) for text in ("text", "quiet", "link") for ground in ("page", "panel")]
    levels = ("critical", "warning", "info", "ok")
    on_panels = [(text, f"{level}-panel") for text in ("text", "link", "quiet") for level in levels]
    own = [(level, f"{level}-panel") for level in levels]
    owners = [("text", f"o{number}") for number in range(12)]
    cells = [("text", "ok-panel"), ("text", "warning-cell"), ("page", "critical")]
    return [*plain, *on_panels, *own, *owners, *cells, ("text", "none"), ("text", "several"),
            ("orphaned", "page"), ("duplicate", "page")]  # fmt: skip


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _schemes() -> list[dict[str, str]]:
    """The colours by name, in light and in dark."""
    (style,) = Page(full_page()).texts["style"]
    blocks = re.findall(r":root \{(.*?)\}", style, re.S)
    assert len(blocks) == 2
    return [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", block)) for block in blocks]


def _luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_contrasts_with_its_ground_in_light_and_in_dark() -> None:
    for colours in _schemes():
        for text, ground in _pairs():
            assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def test_the_worse_a_night_was_the_more_its_cell_stands_out_in_light_and_in_dark() -> None:
    scale = ("ok-panel", "warning-cell", "critical")
    for colours in _schemes():
        contrasts = [_contrast(colours[name], colours["page"]) for name in scale]
        steps = [after / before for before, after in pairwise(contrasts)]
        assert min(steps) > 1.2, contrasts


def test_every_variable_of_the_style_is_there_in_both_schemes() -> None:
    (style,) = Page(full_page()).texts["style"]
    blocks = re.findall(r":root \{(.*?)\}", style, re.S)
    light, dark = (set(re.findall(r"--([a-z0-9-]+):", block)) for block in blocks)
    assert light == dark == set(re.findall(r"var\(--([a-z0-9-]+)\)", style))


def test_what_passed_and_what_is_known_have_lists_of_their_own() -> None:
    html = full_page()

    def listed(anchor: str) -> list[str]:
        found = html.partition(f'class="list" id="{anchor}">')[2]
        found = re.split("</div>|</details>\n{%|<p class=.quiet.>Pictures", found)[0]
        return re.findall(r'/ <bdi class="id">(.*?)</bdi>', found)

    assert listed("passed")[0] == "passed"
    assert listed("known")[0] == "known"
    passed = html.partition('<details class="list" id="passed">')[2]
    assert "What to do" not in passed.partition("<section")[0]


def test_what_passed_is_one_list_by_event_and_asks_for_nothing() -> None:
    """Three topics had a restart, one a deploy, and one nothing that happened to it."""
    passed = {"severity": "INFO", "persistence": "TRANSIENT", "ongoing": False, "status": None}
    of_topics = {"T0": "e1", "T1": "e1", "T2": "e1", "T3": "e2", "T4": None}
    rows = [finding(topic=each, event_id=of, **passed) for each, of in of_topics.items()]
    events = [
        {
            "event_id": event_id,
            "kind": "GROUP_DEPLOYED",
            "findings": 0,
            "headline": f"{event_id} at {begins}",
            "begins": minute(begins),
            "ends": minute(begins + 2),
            "groups_touched": touched,
        }
        # What happens again has its id again.
        for event_id, begins, touched in (("e2", 9, 1), ("e1", 40, 300), ("e1", 9, 299))
    ]
    told = report(orphaned_queues=rows, group_faults=[fault(topic="T0", **passed)], events=events)
    shown = [(each.headline, [p.place.topic for p in each.problems]) for each in told.passed]
    assert shown == [("e1 at 9", ["T0", "T1", "T2"]), ("e2 at 9", ["T3"]), ("", ["T4"])]
    assert told.cards == ()
    html = to_html(told, "r")
    assert "Passed by itself: 5 topics</summary>" in html
    assert html.count('<li id="G/T') == 5
    assert 'class="todo"' not in html
    assert not Page(html).all("article")


def test_a_card_has_one_box_of_what_to_do_of_what_lasts() -> None:
    passed = {"persistence": "TRANSIENT", "ongoing": False, "severity": "INFO"}
    names = ("ROUTE_CHANGED", "STRATEGY_MISMATCH", "GHOST_MEMBER")
    faults = [fault(name, remedy=f"repaint {name}", queues_affected=9, **passed) for name in names]
    (card,) = cards_of(html_of(orphaned_queues=[finding()], group_faults=[fault(), *faults]))
    assert card.count('class="todo"') == 1
    assert "repaint" not in card
    assert "Also seen: " in card
    lasting = fault("GHOST_MEMBER", remedy="mend it too")
    (card,) = cards_of(html_of(orphaned_queues=[finding()], group_faults=[fault(), lasting]))
    assert card.count('class="todo"') == 1
    assert "<li>mend it too" in card


def test_what_waits_is_in_the_first_lines_in_the_causes_and_in_each_card() -> None:
    waiting = {"backlog": 2_000_000, "backlog_per_minute": 60.4, "waiting_since": minute(3)}
    rows = [finding(topic=each) for each in ("T0", "T1")]
    healthy = [health(topic=each, last_seen=minute(59), **waiting) for each in ("T0", "T1")]
    told = report(orphaned_queues=rows, group_faults=[], group_health=healthy)
    html = to_html(told, "r")
    words = "2,000,000 messages wait, 60 more a minute, the oldest from 2026-11-20 10:03:00"
    both = "4,000,000 messages wait, 121 more a minute, the oldest from 2026-11-20 10:03:00"
    verdict, causes = html.partition('id="findings"')[0], html.partition('id="findings"')[2]
    assert f"In these topics {both}." in verdict
    assert f"1 queue consumed by nobody; {words}" in verdict
    assert f"<td>{both}</td>" in causes
    assert causes.count(f"1 queue consumed by nobody; {words}") == 2
    assert both in ticket(told).splitlines()[2]
    assert "<td>4,000,000</td>" in html.partition('id="health"')[2]
    assert f"consumed by nobody; {words}" in ticket(told)


def test_that_nothing_waits_is_said_of_what_lasts_alone() -> None:
    """Dead groups whose queues are idle read as harmless; what passed has nothing to say."""
    rows = [finding(), finding(topic="U", persistence="TRANSIENT", ongoing=False, severity="INFO")]
    idle = [health(topic=each, backlog=0) for each in "TU"]
    told = report(orphaned_queues=rows, group_faults=[], group_health=idle)
    html = to_html(told, "r")
    verdict, causes = html.partition('id="findings"')[0], html.partition('id="findings"')[2]
    assert "In these topics no message waits." in verdict
    assert "<td>no message waits</td>" in causes
    assert causes.count("1 queue consumed by nobody; no message waits") == 1
    assert "consumed by nobody, for a moment; " not in html
    in_chinese = to_html(told, "r", language=language("zh"))
    assert "这些主题中，没有未消费的消息。" in in_chinese


def test_a_number_of_which_a_part_is_not_known_is_a_lower_bound_wherever_it_is() -> None:
    rows = [finding(0, backlog=1_200), finding(1), finding(topic="U"), finding(topic="%RETRY%G")]
    tables = {
        "orphaned_queues": rows,
        "group_faults": [],
        "group_health": [
            health(backlog=1_200, queues=4, queues_without_offsets=1),
            health(topic="U", backlog=None, queues=4, queues_without_offsets=4),
            # A retry topic of which the group committed no offset is given none by a broker.
            health(topic="%RETRY%G", backlog=None, queues=1, queues_without_offsets=1),
        ],
    }
    html = to_html(report(**tables), "r")
    verdict, causes = html.partition('id="findings"')[0], html.partition('id="findings"')[2]
    both = "at least 1,200 messages wait (no offsets of 5 of 8 queues)"
    assert f"In these topics {both}." in verdict
    assert f"<td>{both}</td>" in causes
    assert "nobody; at least 1,200 messages wait (no offsets of 1 of 4 queues)" in causes
    assert 'data-label="Backlog:">at least 1,200</td>' in causes
    assert "<td>at least 1,200</td>" in html.partition('id="health"')[2]
    in_chinese = to_html(report(**tables), "r", language=language("zh"))
    assert "至少 1,200 条消息未消费（8 个队列中有 5 个没有位点）" in in_chinese


def test_what_had_gaps_says_for_how_much_of_the_time_it_was_there() -> None:
    gaps = {"share_of_time": 0.88}
    html = html_of(orphaned_queues=[finding(**gaps)], group_faults=[fault(**gaps)])
    assert "10:19:00</time></span>, 88 % of the time <strong>still there</strong>" in html
    assert "10:19:00</time></span>, 88 % of the time, still there)" in html


def test_what_is_still_there_never_says_that_it_passed() -> None:
    begun = {"severity": "INFO", "persistence": "TRANSIENT"}
    html = html_of(orphaned_queues=[finding(**begun)], group_faults=[fault(**begun)])
    body = html[html.index('id="findings"') : html.index('id="kind-')]
    assert "passed by itself" not in body
    assert "There at the end, and not counted" in body
    assert "certain, not seen for long yet" in body


def test_what_is_still_there_says_so() -> None:
    for ongoing in (True, False):
        told = report(orphaned_queues=[finding(ongoing=ongoing)], group_health=[health()])
        html = to_html(told, "r")
        (line,) = re.findall("<td>((?:(?!<td>).)*10:19:00.*?)</td><td>certain</td>", html)
        assert ("<strong>still there</strong>" in line) == ongoing
        assert ("<strong>Over since" in html) == (not ongoing)
        assert ("| Still there | CRITICAL |" in ticket(told)) == ongoing


def test_a_cause_that_was_there_when_last_seen_is_not_over() -> None:
    told = report(orphaned_queues=[finding(ongoing=True)], group_health=[health()])
    (card,) = told.cards
    problem = replace(card.problem, unseen_since=card.problem.last_seen)
    told = replace(told, cards=(card._replace(problem=problem),))
    causes = to_html(told, "r").partition("By cause")[2].partition("</table>")[0]
    assert "1 group, 1 there when last seen</td>" in causes
    assert ", over" not in causes


def test_of_many_faults_and_topics_some_are_told_in_full() -> None:
    names = ["GHOST_MEMBER", "CONFIG_GAP", "CONFIG_OVERLAP", "ROOM_NOT_SERVED", "UNEXPLAINED"]
    rows = [finding(topic=f"T{number}") for number in range(7)]
    faults = [fault(name, topic="T0") for name in names]
    told = report(orphaned_queues=rows, group_faults=faults, group_health=[health()])
    card, *_ = cards_of(to_html(told, "r"))
    assert len(re.findall("<dt>(?:Why|Also): ", card)) == 4
    assert card.count("Also seen: ") == 1
    assert ticket(told).count("\n### ") == 5
    assert ticket(told).count("**What to do:**") == 1


def test_beyond_the_top_a_topic_has_all_but_the_pictures() -> None:
    """Of 54 faulty topics 44 had a line: who it was stood nowhere in the file."""
    names = [f"T{number:03}" for number in range(120)]
    rows = [finding(topic=name, status="PERSISTING") for name in names]
    faults = [fault(topic=n, client_ids=[f"c-{n}"], evidence=f"c-{n} is used twice") for n in names]
    html = html_of(3, orphaned_queues=rows, group_faults=faults)
    page = Page(html)
    assert len(page.all("article")) == 2
    closed = re.findall(
        r'<details class="problem critical" id="(.*?)" .*?>(.*?)</details>', html, re.S
    )
    assert [anchor for anchor, _ in closed] == [f"G/{name}" for name in names[2:]]
    for (_, text), name in zip(closed[1:], names[3:], strict=True):
        assert f"c-{name} is used twice" in text
        assert "2026-11-20 10:10:00" in text
        assert "Orphaned queue: queue 0 of broker-a" in text
        assert f"rebalance-audit explain --snapshots snapshots --group G --topic {name} " in text
        assert "--mend DUPLICATE_CLIENT_ID" in text
        assert f'<a href="#G/{name}">' in html
    assert "Pictures of 3 of 120 topics" in html
    assert "--top 120" in html


def test_of_a_thousand_faulty_topics_the_worst_have_cards_and_the_others_are_counted() -> None:
    rows = [finding(topic=f"T{number:04}") for number in range(1000)]
    passed = {"severity": "INFO", "persistence": "TRANSIENT", "ongoing": False}
    rows += [finding(topic=f"P{n}", **passed) for n in range(60)]
    html = html_of(1, orphaned_queues=rows)
    assert html.count('<details class="problem critical"') == 449
    assert html.count('<li id="G/P') == 50
    assert len(html.encode()) < 400_000, "it can be mailed"
    assert "550 topics more not shown here" in html
    assert "10 topics more not shown here" in html


def test_a_page_of_many_groups_stays_small() -> None:
    rows = [health(consumer_group=f"G-{number}-of-a-long-name") for number in range(3000)]
    html = to_html(report(group_health=rows), "out/reports")
    assert len(html.encode()) < 300_000
    assert "<summary>3,000 groups without a finding</summary>" in html
    assert "G-2999-of-a-long-name" in html
    assert '<div class="scroll" id="health"' not in html


def test_a_ticket_has_the_verdict_and_the_worst() -> None:
    text = ticket(full_report(), pages="https://docs.example/findings")
    assert text.startswith("# CRITICAL: rebalance audit of 2026-11-20\n")
    assert (
        "| Still there | CRITICAL | `G` / `T` in `C` | 2 queues consumed by nobody and 2 consumed"
        in text
    )
    assert "(https://docs.example/findings/duplicate_client_id.md)" in text
    assert "- RESOLVED: `G` / `G` in `C`, orphaned queue 0 of broker-a" in text


def test_a_ticket_has_so_many_topics_as_are_told_in_full_and_names_one_cluster_nowhere() -> None:
    rows = [finding(topic=f"T{number}") for number in range(3)]
    for top, listed in ((2, 2), (0, 1), (3, 3)):
        told = report(top=top, orphaned_queues=rows, group_health=[health()])
        text = ticket(told, top)
        assert text.count("| `G` / `T") == listed
        assert (f"{3 - listed} topic" in text) == (listed < 3)
        assert " in `C`" not in text
        assert " in <bdi" not in to_html(told, "r")
    # The command can be pasted whatever the folder is called.
    text = ticket(told, 1, reports="/home/a/my reports")
    assert "`rebalance-audit show group_faults --reports 'my reports' --date 2026-11-20`" in text


def test_numbers_are_told_as_a_person_reads_them() -> None:
    html = full_page()
    assert "20.0 queue-minutes with nobody, 20.0 with several" in html
    assert "<td>20.0</td><td>20.0</td><td>50 %</td>" in html
    assert "1 line was not understood (0.100 %)" in html
    (row,) = re.findall(
        "<td>not audited</td>.*", html_of(group_health=[health(coverage="NO_TOPIC")])
    )
    assert row.endswith("<td>0</td><td>0</td><td>100 %</td></tr>")
    shared = html_of(**two_processes_share_one_client_id())
    assert '<td class="wide">Give each process its own instanceName</td>' in shared


def test_a_link_of_a_ticket_ends_where_the_address_ends() -> None:
    told = report(**two_processes_share_one_client_id())
    text = ticket(told, pages="https://docs.example/a (b)/")
    assert "](https://docs.example/a%20%28b%29/duplicate_client_id.md)" in text


def a_night(groups: int, faulty: int) -> dict[str, list[dict[str, Any]]]:
    """So many groups, the first of them with a fault of their topic and of their retry topic."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for number in range(groups):
        group = f"GID_payment-settlement-consumer-{number:03}"
        if number < faulty:
            for topic in ("TOPIC_payments", f"%RETRY%{group}"):
                rows = two_processes_share_one_client_id(consumer_group=group, topic=topic)
                for name, of_table in rows.items():
                    tables.setdefault(name, []).extend(of_table)
        else:
            tables.setdefault("group_health", []).append(health(consumer_group=group))
    return tables


def test_groups_that_recovered_from_one_event_are_one_line_and_none_is_lost() -> None:
    """A broker's restart was 16,000 of the 31,758 pixels of a page: a row for each group."""
    passed = {"severity": "INFO", "persistence": "TRANSIENT", "ongoing": False, "status": None}
    known = {"known_issue": "OPS-1", "severity": "INFO"}
    rows = [
        *(finding(consumer_group=f"R{n}", event_id="e1", **passed) for n in range(7)),
        finding(consumer_group="lonely", event_id=None, **passed),
        finding(consumer_group="accepted", **known),
        # What lasts counts, whatever else of the group passed.
        finding(consumer_group="R7", event_id="e1", **passed),
        finding(consumer_group="R7", topic="U"),
    ]
    groups = [*(f"R{n}" for n in range(8)), "lonely", "accepted", "well"]
    event = {"event_id": "e1", "headline": "10:09 broker-a left", "begins": minute(9)}
    event |= {"ends": minute(12), "groups_touched": 8, "kind": "GROUP_DEPLOYED", "findings": 0}
    told = report(
        orphaned_queues=rows,
        group_health=[health(consumer_group=each) for each in groups],
        events=[event],
    )
    named = {
        (each.state, each.headline): [row["consumer_group"] for row in each.rows]
        for each in told.named
    }
    assert named == {
        ("RECOVERED", "10:09 broker-a left"): [f"R{n}" for n in range(7)],
        ("RECOVERED", ""): ["lonely"],
        ("NOT_COUNTED", ""): ["accepted"],
        ("FINE", ""): ["well"],
    }
    assert [row["consumer_group"] for row in told.unwell] == ["R7"]
    html = to_html(told, "r")
    assert "<summary>7 groups recovered: 10:09 broker-a left</summary>" in html


def test_causes_are_in_the_order_of_what_waits_in_all_their_topics() -> None:
    """One topic of the first has more than any of the second, which has more together."""
    waiting = {"A": 50, "B0": 30, "B1": 30, "over": 900}
    rows = [finding(topic=each, ongoing=each != "over") for each in waiting]
    kinds = {"A": "GHOST_MEMBER", "over": "CONFIG_GAP"}
    faults = [
        fault(kinds.get(each, "STRATEGY_MISMATCH"), topic=each, ongoing=each != "over")
        for each in waiting
    ]
    causes = {each: [kinds.get(each, "STRATEGY_MISMATCH")] for each in waiting}
    rows = [row | {"causes": causes[row["topic"]]} for row in rows]
    told = report(
        orphaned_queues=rows,
        group_faults=faults,
        group_health=[health(topic=each, backlog=number) for each, number in waiting.items()],
    )
    names = [each.kind.name for each in told.causes]
    assert names == ["STRATEGY_MISMATCH", "GHOST_MEMBER", "CONFIG_GAP"]


def test_the_filter_knows_the_clients_of_a_group_without_a_finding() -> None:
    rows = [
        {"cluster": "C", "consumer_group": g, "topic": "", "client_id": f"{n}@{g}"}
        for g in "GH"
        for n in (2, 1)
    ]
    told = report(group_health=[health(), health(consumer_group="H")], allocations=rows)
    html = to_html(told, "r")
    assert '<li data-clients="1@H 2@H">' in html
    assert "it lacks some client ids" not in html
    rows += [{**rows[0], "consumer_group": "H", "client_id": "c" * 100_000}]
    told = report(group_health=[health(), health(consumer_group="H")], allocations=rows)
    assert "it lacks some client ids" in to_html(told, "r")


def test_problems_of_one_cause_have_one_remedy_and_a_retry_topic_its_groups_card() -> None:
    html = to_html(report(top=20, **a_night(8, 6)), "r")
    section = html.partition('<section class="cause"')[2].partition("</section>")[0]
    assert "6 groups: several processes share one client id" in section
    assert section.count("give each process its own instanceName") == 1
    assert section.count("<article") == 2
    assert section.count('<details class="problem') == 4
    assert section.count("The group&#39;s retry topic") + section.count("group's retry topic") == 6
    # One that counts is not hidden behind one that passed.
    alone = [
        finding(topic="T", severity="INFO", persistence="TRANSIENT", ongoing=False),
        finding(topic="%RETRY%G"),
    ]
    html = html_of(orphaned_queues=alone)
    assert "retry topic" not in html
    assert html.count("<article") == html.count('<li id="G/T"') == 1


def test_where_the_remedies_differ_each_card_has_its_own() -> None:
    tables = a_night(3, 3)
    for row, remedy in zip(tables["group_faults"], "aabbbb", strict=True):
        row["remedy"] = f"remedy {remedy}"
    html = to_html(report(**tables), "r")
    section = html.partition('<section class="cause"')[2].partition("</section>")[0]
    shared, _, cards = section.partition("<article")
    assert 'remedy b<span class="quiet"> (2 groups)' in shared
    assert 'remedy a<span class="quiet"> (1 group)' in shared
    assert len(re.findall("What to do:</strong> remedy [ab]", cards)) == 6  # retry topics too


@pytest.mark.parametrize("top", [0, 10], ids=["closed", "with pictures"])
@pytest.mark.parametrize(
    ("clients", "shared"),
    [("abcd", "For each of: a and c: see to the clients"), ("aaaa", "See to a")],
)
def test_remedies_that_differ_in_names_alone_are_one_and_the_verdict_has_the_names(
    clients: str, shared: str, top: int
) -> None:
    tables = a_night(2, 2)
    for row, client in zip(tables["group_faults"], clients, strict=True):
        row["remedy"] = Text("see to {these_clients}", these_clients=client)
        row["client_ids"] = [client]
        row["texts"] = encode({"remedy": row["remedy"]})
    html = to_html(report(top=top, **tables), "r")
    section = html.partition('<section class="cause"')[2].partition("</section>")[0]
    assert f"What to do:</strong> {within(shared)}<" in section
    assert section.count('class="todo"') == 1
    table = html.partition("By cause, worst first")[2].partition("</table>")[0]
    assert f'<td class="wide">{shared}</td>' in table
    assert re.search("<dd>See to [a-d]</dd>", html)


@given(st.text(alphabet="aZ0-_./@%|日", max_size=60))
def test_a_name_is_broken_after_separators_alone_and_is_whole_in_its_title(name: str) -> None:
    html = to_html(report(orphaned_queues=[finding(consumer_group=f"G{name}")]), "r")
    (shown,) = set(re.findall(r'<article.*?<h4.*?<bdi class="id"(.*?)</bdi>', html, re.DOTALL))
    title, _, text = shown.partition(">")
    parts = text.split("<wbr>")
    assert all(re.search(r"[-_./@%|]$", part) for part in parts[:-1])
    assert all(len(part) <= 30 for part in parts)
    assert f"G{name}" == (title[8:-1] if title else "".join(parts))


def test_the_foot_says_what_made_the_page() -> None:
    run = published(settings="3f9a", engine="local", versions={"pyarrow": "26.0.1"})
    html = to_html(build_report(run, RowTables(), 1), "/home/alice/reports")
    assert "alice" not in html, "a page is for others than whose machine it was"
    foot = html.partition("<footer>")[2]
    for each in ("<code>3f9a</code>", "engine local", "pyarrow 26.0.1", f"audit {__version__}"):
        assert each in foot
