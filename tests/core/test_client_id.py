"""Client ids as the clients of all languages make them, and as nobody would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core import ClientIdFormat, parse_client_id

SPRING_NAME = "10.0.0.9:9876;10.0.0.10:9876"


@pytest.mark.parametrize(
    ("client_id", "expected", "address", "can_collide"),
    [
        ("172.17.0.1@170", "JAVA_PID", "172.17.0.1", True),
        ("10.0.0.1@-1", "JAVA_PID", "10.0.0.1", True),
        ("10.0.0.11@1#123456789012345", "JAVA_PID_NANO", "10.0.0.11", False),
        ("10.0.0.11@1#-5", "JAVA_PID_NANO", "10.0.0.11", False),
        ("${clientIP}@26917#5261547777682927", "JAVA_PID_NANO", "${clientIP}", False),
        ("10.0.0.11@1#DEFAULT", "CPP", "10.0.0.11", True),
        ("10.0.0.11@DEFAULT", "DEFAULT", "10.0.0.11", True),
        ("10.0.0.11@order-svc-0", "CUSTOM", "10.0.0.11", True),
        ("10.0.0.11@team@order@svc", "CUSTOM", "10.0.0.11", True),
        ("10.0.0.11@", "CUSTOM", "10.0.0.11", True),
        ("10.0.0.11@7@unit10", "JAVA_PID", "10.0.0.11", True),
        ("10.0.0.11@7#123456789@unit10@STREAM", "JAVA_PID_NANO", "10.0.0.11", False),
        ("10.0.0.11@7@STREAM", "JAVA_PID", "10.0.0.11", True),
        ("10.0.0.11@DEFAULT@unit", "DEFAULT", "10.0.0.11", True),
        (f"10.0.0.1@{SPRING_NAME}@1", "SPRING", "10.0.0.1", True),
        (f"10.0.0.1@{SPRING_NAME}@1@99887766554433", "SPRING", "10.0.0.1", False),
        (f"10.0.0.1@{SPRING_NAME}@1@STREAM", "SPRING", "10.0.0.1", True),
        ("10.0.0.1@ns1:9876;ns2:9876#10.0.0.1@1", "ONS_CLOUD", "10.0.0.1", True),
        ("10.0.0.1@1#-1204#7781#123456789012345", "ONS_CLOUD", "10.0.0.1", False),
        ("10.0.0.1@GID_pay|1", "SPRING_CLOUD", "10.0.0.1", True),
        ("10.0.0.1@key|secret|topic|1", "SPRING_CLOUD", "10.0.0.1", True),
        ("10.0.0.1@LTAIkey|secret|GID_pay", "SPRING_CLOUD", "10.0.0.1", True),
        ("10.0.0.1@blue|green|red", "CUSTOM", "10.0.0.1", True),
        ("10.0.0.1@key|GID_pay|1|17r9k3h8x", "SPRING_CLOUD", "10.0.0.1", False),
        ("10.0.0.1@GID_pay|1|-17r9k3h8x@unit", "SPRING_CLOUD", "10.0.0.1", False),
        ("10.0.0.1@blue|green", "CUSTOM", "10.0.0.1", True),
        ("macbook-pro@90009@0@2dyeb8lep", "GRPC", "macbook-pro", False),
        ("host@1#3_1726738800000", "GRPC", "host", False),
        ("[fe80::1%eth0]@1#123456789012345", "JAVA_PID_NANO", "[fe80::1%eth0]", False),
        ("[2001:db8::1]@1", "JAVA_PID", "[2001:db8::1]", True),
        ("fe80::5c03:2aff@16236", "JAVA_PID", "fe80::5c03:2aff", True),
        ("consumer-95", "UNKNOWN", "", True),
        ("", "UNKNOWN", "", True),
        ("@", "CUSTOM", "", True),
        ("@1", "JAVA_PID", "", True),
        ("[broken@1", "JAVA_PID", "[broken", True),
    ],
)
def test_each_format_is_told_from_its_text(client_id, expected, address, can_collide) -> None:
    parsed = parse_client_id(client_id)
    assert parsed.format is ClientIdFormat[expected]
    assert parsed.address == address
    assert parsed.can_collide is can_collide
    if expected == "UNKNOWN":
        assert parsed.instance_name == client_id
    else:
        assert f"{parsed.address}@{parsed.instance_name}" == client_id


def test_a_rust_client_counts_where_java_puts_the_time() -> None:
    parsed = parse_client_id("host@1#0", language="RUST")
    assert parsed.format is ClientIdFormat.GRPC
    assert parsed.can_collide
    assert parse_client_id("host@1#0", language="JAVA").format is ClientIdFormat.JAVA_PID_NANO


@given(
    st.text(st.characters(), max_size=30)
    | st.text(alphabet="@#:;[]0a_-\n\x00\ud800٣D", max_size=40),
    st.none() | st.text(max_size=6),
)
def test_no_text_makes_it_fail(client_id, language) -> None:
    parse_client_id(client_id, language)


@pytest.mark.long
@pytest.mark.parametrize(
    "client_id",
    [
        "1" * 2_000_000,
        "h@" + "1" * 2_000_000,
        "h@" + "1#" * 1_000_000,
        "h@" + ":1;" * 1_000_000,
        "h@" + "1|" * 1_000_000,
        "h@" + "1@" * 1_000_000,
        "h@" + "a:" * 1_000_000,
        "h@" + ";" * 1_000_000,
        "[" * 1_000_000 + "@" * 1_000_000,
    ],
    ids=lambda text: text[:8],
)
def test_the_time_to_read_an_id_grows_with_its_length_alone(client_id) -> None:
    # Were it to grow with the square of the length, this would not end before the day does.
    assert parse_client_id(client_id).format in ClientIdFormat


def test_digits_of_other_scripts_are_no_process_id() -> None:
    assert parse_client_id("10.0.0.1@\u0663").format is ClientIdFormat.CUSTOM


def test_a_line_break_is_part_of_the_name() -> None:
    assert parse_client_id("10.0.0.1@1\n").format is ClientIdFormat.CUSTOM
