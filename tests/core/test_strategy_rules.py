"""Which strategy a client is taken to use, and where that is known from."""

from __future__ import annotations

import pytest

from rebalance_core import StrategyRule, StrategyRules
from rebalance_core.strategy_rules import KnownClient
from tests.support.snapshots import queue

ROOMS = {
    "broker_room": {"broker-a": "room1"},
    "client_room_patterns": [{"pattern": ".*", "room": "room1"}],
}


def resolved(rules: StrategyRules, observed=None, of_group=None, group="G", client_id="a"):
    strategy = rules.resolve(KnownClient(group, client_id, observed, of_group))
    return strategy.strategy and strategy.strategy.name, strategy.source


@pytest.mark.parametrize(
    ("rule", "observed", "of_group", "expected"),
    [
        pytest.param(None, None, None, ("AVG", "assumed"), id="nothing is known"),
        pytest.param(None, None, "AVG_BY_CIRCLE", ("AVG_BY_CIRCLE", "group"), id="of its group"),
        pytest.param(
            "CONSISTENT_HASH",
            None,
            "AVG_BY_CIRCLE",
            ("CONSISTENT_HASH", "configured"),
            id="a rule before what the group uses",
        ),
        pytest.param(
            "CONSISTENT_HASH",
            "AVG_BY_CIRCLE",
            "AVG",
            ("AVG_BY_CIRCLE", "observed"),
            id="what was observed of it before all",
        ),
    ],
)
def test_the_best_known_source_counts(rule, observed, of_group, expected):
    rules = StrategyRules([] if rule is None else [StrategyRule("G", rule)])

    assert resolved(rules, observed, of_group) == expected


def test_the_default_is_used_where_nothing_is_known():
    assert resolved(StrategyRules(default="CONSISTENT_HASH")) == ("CONSISTENT_HASH", "assumed")


def test_the_first_rule_that_matches_group_and_client_counts():
    rules = StrategyRules(
        [
            StrategyRule("G", "AVG_BY_CIRCLE", clients="10[.].*"),
            StrategyRule("G.*", "CONSISTENT_HASH"),
            StrategyRule(".*", "AVG"),
        ]
    )

    assert resolved(rules, client_id="10.0.0.1@1")[0] == "AVG_BY_CIRCLE"
    assert resolved(rules, client_id="11.0.0.1@1")[0] == "CONSISTENT_HASH"
    assert resolved(rules, group="H", client_id="10.0.0.1@1")[0] == "AVG"


def test_a_rule_must_match_the_whole_name():
    assert resolved(StrategyRules([StrategyRule("G", "CONSISTENT_HASH")]), group="GG") == (
        "AVG",
        "assumed",
    )


def test_a_rule_gives_its_parameters_to_the_strategy_that_it_names():
    rules = StrategyRules([StrategyRule("G", "CONSISTENT_HASH", params={"virtual_node_count": 0})])

    with_rule = rules.resolve(KnownClient("G", "a", "CONSISTENT_HASH")).strategy
    without_rule = rules.resolve(KnownClient("H", "a", "CONSISTENT_HASH")).strategy

    assert with_rule.claims([queue(0)], ["a"])["a"].tolist() == []
    assert without_rule.claims([queue(0)], ["a"])["a"].tolist() == [0]


@pytest.mark.parametrize("name", ["CONFIG", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY-AVG"])
def test_an_observed_strategy_that_needs_parameters_is_not_known_without_a_rule(name):
    strategy = StrategyRules([StrategyRule("other", "AVG")]).resolve(KnownClient("G", "a", name))

    assert strategy.strategy is None
    assert strategy.unknown.startswith(f"the parameters of {name} are not in the settings")
    assert f'name = "{name}"' in strategy.unknown


def test_the_parameters_of_another_strategys_rule_are_not_used():
    rules = StrategyRules([StrategyRule("G", "MACHINE_ROOM", params={"consumeridcs": ["room1"]})])

    assert rules.resolve(KnownClient("G", "a", "CONFIG")).strategy is None
    assert resolved(rules, "AVG") == ("AVG", "observed")
    assert resolved(rules) == ("MACHINE_ROOM", "configured")


def test_the_rule_names_what_an_observed_machine_room_nearby_wraps():
    rules = StrategyRules([StrategyRule("G", "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", params=ROOMS)])

    assert resolved(rules, "MACHINE_ROOM_NEARBY") == (
        "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE",
        "observed",
    )


def test_an_observed_class_of_user_code_is_not_known():
    strategy = StrategyRules().resolve(KnownClient("G", "a", "com.example.Mine"))

    assert strategy.strategy is None
    assert "unknown strategy 'com.example.Mine'" in strategy.unknown


def test_equal_resolutions_share_one_strategy():
    rules = StrategyRules()

    assert (
        rules.resolve(KnownClient("G", "a", "AVG")).strategy
        is rules.resolve(KnownClient("H", "b", "AVG")).strategy
    )


GO, CPP, OLD_JAVA = {"language": "GO"}, {"language": "CPP"}, {"language": "JAVA", "version": 371}
#: No SDK that computes anything otherwise than Java 5.3.
CURRENT = [
    {},
    {"language": "JAVA"},
    {"language": "JAVA", "version": 373},
    {"language": None, "version": 200},
    {"language": "DOTNET", "version": 200},
]


@pytest.mark.parametrize(
    ("client", "name", "full_name"),
    [
        (GO, "AVG", "AVG"),
        (GO, "CONSISTENT_HASH", "CONSISTENT_HASH of client-go"),
        (GO, "MACHINE_ROOM_NEARBY", "AVG"),
        (GO, "MACHINE_ROOM_NEARBY-CONSISTENT_HASH", "AVG"),
        (CPP, "CONSISTENT_HASH", "AVG"),
        (CPP, "MACHINE_ROOM", "AVG"),
        (CPP, "com.example.Mine", "AVG"),
        (OLD_JAVA, "CONSISTENT_HASH", "CONSISTENT_HASH"),
    ],
)
def test_the_clients_sdk_tells_what_an_observed_name_means(client, name, full_name):
    resolved = StrategyRules().resolve(KnownClient("G", "a", name, **client))

    assert resolved.strategy.full_name == full_name
    assert (resolved.source, resolved.unknown) == ("observed", None)


@pytest.mark.parametrize(
    ("client", "full_name"),
    [
        (GO, "MACHINE_ROOM of client-go"),
        (OLD_JAVA, "MACHINE_ROOM of Java before 4.8.0"),
        *[(client, "MACHINE_ROOM") for client in CURRENT],
    ],
)
def test_the_clients_sdk_tells_what_a_configured_name_means(client, full_name):
    rules = StrategyRules([StrategyRule("G", "MACHINE_ROOM", params={"consumeridcs": ["room1"]})])

    resolved = rules.resolve(KnownClient("G", "a", None, **client))

    assert (resolved.strategy.full_name, resolved.source) == (full_name, "configured")
    assert resolved.strategy.rooms == {"room1"}


@pytest.mark.parametrize("client", [GO, OLD_JAVA])
def test_machine_room_needs_its_rooms_of_every_sdk_that_has_it(client):
    assert StrategyRules().resolve(KnownClient("G", "a", "MACHINE_ROOM", **client)).strategy is None


def test_a_rule_for_java_leaves_the_clients_of_other_sdks_avg():
    rules = StrategyRules([StrategyRule("G", "MACHINE_ROOM_NEARBY-CONSISTENT_HASH", params=ROOMS)])

    for client in (GO, CPP):
        resolved = rules.resolve(KnownClient("G", "a", None, **client))
        assert (resolved.strategy.full_name, resolved.source) == ("AVG", "configured")


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE", "CONFIG", "CONSISTENT_HASH"])
@pytest.mark.parametrize("client", [*CURRENT, OLD_JAVA])
def test_java_before_4_8_0_differs_in_machine_room_alone(name, client):
    rules = StrategyRules([StrategyRule("G", name)])

    assert (
        rules.resolve(KnownClient("G", "a", None, **client)).strategy
        is rules.resolve(KnownClient("G", "b", name)).strategy
    )


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE", "CONFIG"])
def test_what_client_go_computes_as_java_does_is_one_strategy(name):
    rules = StrategyRules([StrategyRule("G", name)])

    assert (
        rules.resolve(KnownClient("G", "a", None, **GO)).strategy
        is rules.resolve(KnownClient("G", "b", None)).strategy
    )


def test_without_parameters_it_is_one_strategy_whichever_rule_names_it():
    rules = StrategyRules(
        [StrategyRule("G", "AVG", clients="a"), StrategyRule("G", "MACHINE_ROOM", clients="b")]
    )
    of_rule = rules.resolve(KnownClient("G", "a", None)).strategy

    assert rules.resolve(KnownClient("G", "b", None, **CPP)).strategy is of_rule
    assert rules.resolve(KnownClient("G", "c", None)).strategy is of_rule


def test_only_where_the_orders_differ_are_clients_that_sort_bytewise_apart():
    rules = StrategyRules()
    of_java = rules.resolve(KnownClient("G", "a", "AVG")).strategy
    of_go, of_cpp = (
        rules.resolve(KnownClient("G", "a", "AVG", orders_differ=True, **client)).strategy
        for client in (GO, CPP)
    )

    assert of_go is of_cpp
    assert of_go.sorts_bytewise
    assert rules.resolve(KnownClient("G", "a", "AVG", **GO)).strategy is of_java
    assert (
        rules.resolve(KnownClient("G", "a", "AVG", orders_differ=True, **OLD_JAVA)).strategy
        is of_java
    )
