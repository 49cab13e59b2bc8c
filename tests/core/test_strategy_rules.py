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


HASH_OF_G = StrategyRules([StrategyRule("G", "CONSISTENT_HASH")])
CIRCLE_BEFORE_ALL = StrategyRules(
    [
        StrategyRule("G", "AVG_BY_CIRCLE", clients="10[.].*"),
        StrategyRule("G.*", "CONSISTENT_HASH"),
        StrategyRule(".*", "AVG"),
    ]
)
ROOM_OF_G = StrategyRules([StrategyRule("G", "MACHINE_ROOM", params={"consumeridcs": ["room1"]})])
NEARBY_OF_G = StrategyRules([StrategyRule("G", "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", params=ROOMS)])


@pytest.mark.parametrize(
    ("rules", "known", "name", "source"),
    [
        (StrategyRules(), {}, "AVG", "assumed"),
        (StrategyRules(default="CONSISTENT_HASH"), {}, "CONSISTENT_HASH", "assumed"),
        (StrategyRules(), {"of_group": "AVG_BY_CIRCLE"}, "AVG_BY_CIRCLE", "group"),
        # A rule goes before what the group uses, and what was observed of the client before all.
        (HASH_OF_G, {"of_group": "AVG_BY_CIRCLE"}, "CONSISTENT_HASH", "configured"),
        (HASH_OF_G, {"observed": "AVG_BY_CIRCLE", "of_group": "AVG"}, "AVG_BY_CIRCLE", "observed"),
        # The first rule that matches group and client counts; it must match the whole name.
        (CIRCLE_BEFORE_ALL, {"client_id": "10.0.0.1@1"}, "AVG_BY_CIRCLE", "configured"),
        (CIRCLE_BEFORE_ALL, {"client_id": "11.0.0.1@1"}, "CONSISTENT_HASH", "configured"),
        (CIRCLE_BEFORE_ALL, {"group": "H", "client_id": "10.0.0.1@1"}, "AVG", "configured"),
        (HASH_OF_G, {"group": "GG"}, "AVG", "assumed"),
        # The parameters of another strategy's rule are not used.
        (ROOM_OF_G, {"observed": "CONFIG"}, None, "observed"),
        (ROOM_OF_G, {"observed": "AVG"}, "AVG", "observed"),
        (ROOM_OF_G, {}, "MACHINE_ROOM", "configured"),
        # The rule names what an observed one wraps.
        (
            NEARBY_OF_G,
            {"observed": "MACHINE_ROOM_NEARBY"},
            "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE",
            "observed",
        ),
    ],
)
def test_the_best_known_source_counts(rules, known, name, source):
    assert resolved(rules, **known) == (name, source)


def test_a_rule_gives_its_parameters_to_the_strategy_that_it_names():
    rules = StrategyRules([StrategyRule("G", "CONSISTENT_HASH", params={"virtual_node_count": 0})])
    for group, taken in (("G", []), ("H", [0])):
        strategy = rules.resolve(KnownClient(group, "a", "CONSISTENT_HASH")).strategy
        assert strategy.claims([queue(0)], ["a"])["a"].tolist() == taken


@pytest.mark.parametrize("name", ["CONFIG", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY-AVG"])
def test_an_observed_strategy_that_needs_parameters_is_not_known_without_a_rule(name):
    strategy = StrategyRules([StrategyRule("other", "AVG")]).resolve(KnownClient("G", "a", name))
    assert strategy.strategy is None
    assert strategy.unknown.startswith(f"the parameters of {name} are not in the settings")
    assert f'name = "{name}"' in strategy.unknown


def test_an_observed_class_of_user_code_is_not_known():
    strategy = StrategyRules().resolve(KnownClient("G", "a", "com.example.Mine"))
    assert strategy.strategy is None
    assert "unknown strategy 'com.example.Mine'" in strategy.unknown


def same(rules, one, other):
    """True if two clients of G, by what is known of them, have one and the same strategy."""
    first, second = (
        rules.resolve(KnownClient("G", client_id, observed, **told)).strategy
        for client_id, observed, told in (one, other)
    )
    return first is second


def test_equal_resolutions_share_one_strategy():
    rules = StrategyRules()
    of_h = rules.resolve(KnownClient("H", "b", "AVG")).strategy
    assert rules.resolve(KnownClient("G", "a", "AVG")).strategy is of_h


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
    resolved = ROOM_OF_G.resolve(KnownClient("G", "a", None, **client))
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
def test_java_before_4_8_0_differs_in_machine_room_alone(name):
    rules = StrategyRules([StrategyRule("G", name)])
    for client in (*CURRENT, OLD_JAVA):
        assert same(rules, ("a", None, client), ("b", name, {})), client
    # And client-go in its ring.
    of_go = same(rules, ("a", None, GO), ("b", None, {}))
    assert of_go == (name != "CONSISTENT_HASH")


def test_without_parameters_it_is_one_strategy_whichever_rule_names_it():
    rules = StrategyRules(
        [StrategyRule("G", "AVG", clients="a"), StrategyRule("G", "MACHINE_ROOM", clients="b")]
    )
    assert same(rules, ("a", None, {}), ("b", None, CPP))
    assert same(rules, ("a", None, {}), ("c", None, {}))


def test_only_where_the_orders_differ_are_clients_that_sort_bytewise_apart():
    rules, differ = StrategyRules(), {"orders_differ": True}
    assert same(rules, ("a", "AVG", GO | differ), ("a", "AVG", CPP | differ))
    assert rules.resolve(KnownClient("G", "a", "AVG", **GO, **differ)).strategy.sorts_bytewise
    of_java = ("a", "AVG", {})
    assert same(rules, ("a", "AVG", GO), of_java)
    assert same(rules, ("a", "AVG", OLD_JAVA | differ), of_java)
    assert not same(rules, ("a", "AVG", GO | differ), of_java)
