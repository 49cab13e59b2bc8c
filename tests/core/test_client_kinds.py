"""What made a client id, and what its owner is told to change."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rebalance_core.client_id import kind_of, remedy_of, restart_of, without_secret

#: Ordinals of MQVersion: 4.5.1, 4.9.0, and what client-go gives.
V4_5_1, V4_9_0, OF_GO = 317, 393, 317


@pytest.mark.parametrize(
    ("client_id", "language", "version", "kind", "says"),
    [
        # Java's own choice, before and since it appends the start time.
        ("172.17.0.1@170", "JAVA", V4_5_1, "JAVA_BEFORE_4_9_0", "update the client to 4.9.0"),
        ("172.17.0.1@1", None, None, "JAVA_BEFORE_4_9_0", "setInstanceName"),
        # Since 4.9.0 nothing but a name that was set ends in the bare process id.
        ("172.17.0.1@170", "JAVA", V4_9_0, "JAVA_NAMED", "in place of 170, which was set"),
        ("10.0.0.1@order", "JAVA", V4_5_1, "JAVA_NAMED", "in place of order"),
        ("10.0.0.1@1#123456789012345", "JAVA", V4_9_0, "JAVA", "running machine was copied"),
        ("10.0.0.1@DEFAULT", "JAVA", V4_9_0, "BROADCASTING", "broadcasting"),
        ("10.0.0.1@10.0.0.9:9876@1", "JAVA", 401, "ROCKETMQ_SPRING", "to 2.2.1 or later"),
        (
            "10.0.0.1@org.apache.rocketmq.spring.support.DefaultRocketMQListenerContainer_1",
            *("JAVA", 313, "ROCKETMQ_SPRING_BEAN", "whose 2.0.3 gives every process"),
        ),
        ("10.0.0.1@k|s3cr3t|pay|1", "JAVA", 317, "SPRING_CLOUD_ALIBABA", "2021.0.5.0"),
        ("10.0.0.1@GID_pay|1", "JAVA", 401, "SPRING_CLOUD_ALIBABA", "2021.0.5.0"),
        ("10.0.0.1@ns1:9876;ns2:9876#10.0.0.1@1", "JAVA", 300, "ONS", "InstanceName"),
        # The same text is another client's, by its language.
        ("172.17.0.1@1", "GO", OF_GO, "GO", "consumer.WithInstance"),
        ("10.0.0.1@order", "GO", OF_GO, "GO", "consumer.WithInstance"),
        ("10.0.0.1@1#DEFAULT", "CPP", 401, "CPP", "SetPushConsumerInstanceName"),
        ("10.0.0.1@1#DEFAULT", None, None, "CPP", "setInstanceName"),
        ("307-10.2.2.82@DEFAULT", None, None, "CPP", "setInstanceName"),
        ("10.0.0.1@1", "PYTHON", 401, "PYTHON", "set_instance_name"),
        ("10.0.0.1@1#DEFAULT", "PYTHON", 401, "PYTHON", "instance_name"),
        # ali-ons gives JAVA and 3.4.9.
        ("10.0.0.1@1", "JAVA", 121, "NODE", "consumer in ali-ons"),
        ("10.0.0.1@1", "DOTNET", 401, "DOTNET", "ClientId"),
        ("host@1#0", "RUST", 500, "GRPC", "restart one of the processes"),
        ("10.0.0.1@1", "PHP", 0, "OTHER", "instanceName"),
        ("consumer-95", "JAVA", V4_9_0, "OTHER", "instanceName"),
        # A placeholder is the reason, whatever follows it.
        ("${clientIP}@26917#52615", "JAVA", 401, "PLACEHOLDER", "${clientIP} in the id"),
        ("10.0.0.1@#{app.name}", "JAVA", 401, "PLACEHOLDER", "client's instanceName"),
        ("$(hostname)@1", "GO", OF_GO, "PLACEHOLDER", "client's clientIP"),
        ("10.0.0.1@%COMPUTERNAME%", "DOTNET", 401, "PLACEHOLDER", "%COMPUTERNAME%"),
        ("10.0.0.1@{{ .Release.Name }}", "JAVA", 401, "PLACEHOLDER", "{{ .Release.Name }}"),
        # One "%" of Alibaba Cloud's names, the topics of retries and an address with a scope.
        ("10.0.0.1@a|b|MQ_INST_1_B%pay|1", "JAVA", 317, "SPRING_CLOUD_ALIBABA", "2021.0.5.0"),
        ("10.0.0.1@%RETRY%group%", "JAVA", V4_9_0, "JAVA_NAMED", "was set"),
        ("[fe80::1%eth0]@1", "JAVA", V4_5_1, "JAVA_BEFORE_4_9_0", "4.9.0"),
    ],
)
def test_what_made_an_id_decides_what_to_change(client_id, language, version, kind, says) -> None:
    assert kind_of(client_id, language, version).name == kind
    assert says in remedy_of(client_id, language, version)


def test_no_remedy_names_the_setting_of_another_client() -> None:
    assert "setInstanceName" not in remedy_of("172.17.0.1@1", "GO", OF_GO)
    assert "WithInstance" not in remedy_of("172.17.0.1@1", "JAVA", V4_5_1)


def test_ids_of_one_kind_share_their_remedy() -> None:
    one = remedy_of("172.17.0.1@1", "GO", OF_GO)
    assert remedy_of("172.17.0.1@2", "GO", OF_GO) == one


def test_a_restart_names_each_client_once() -> None:
    assert restart_of(["c", "a", "b", "a"], "JAVA").startswith(
        "restart these 3 clients, a, b and c"
    )
    assert restart_of(["a"], None).startswith("restart a: ")
    assert "client-go to 2.1.2" in restart_of(["a", "b"], "GO")
    assert restart_of([]) == "restart the group's clients"
    many = restart_of([f"10.0.0.{n}@1" for n in range(50)])
    assert many.startswith("restart these 50 clients, 10.0.0.0@1, ")
    assert "and 30 more: " in many


def test_a_secret_is_taken_out_where_it_was_put_in() -> None:
    assert "spring-cloud-starter" in without_secret(["10.0.0.1@a|b|c|1"])
    assert without_secret(["10.0.0.1@secret=x"]).startswith("take it out")


@example("10.0.0.1@", "JAVA", None)
@given(
    st.text(alphabet="@#|%${}()0a.;:", max_size=30),
    st.sampled_from([None, "", "JAVA", "GO", "CPP", "PERL"]),
    st.none() | st.integers(-1, 600),
)
def test_every_id_gets_a_remedy(client_id, language, version) -> None:
    assert remedy_of(client_id, language, version)
