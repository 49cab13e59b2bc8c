"""What the check of a snapshot table lets through, and what it says of the rest."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality
from pyspark.sql import functions as F

from jobs.contract import check_contract
from jobs.errors import ContractError
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from tests.support.snapshots import frame, heartbeat_row, route_row

pytestmark = pytest.mark.spark


def test_a_table_as_declared_comes_through_as_it_is(spark):
    heartbeats = frame(spark, HEARTBEATS, [heartbeat_row(), heartbeat_row(client_id="b")])

    assert_df_equality(
        check_contract(HEARTBEATS, heartbeats),
        heartbeats,
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_every_missing_and_every_mistyped_column_is_named_at_once(spark):
    routes = frame(spark, TOPIC_ROUTES, [route_row()])
    wrong = routes.drop("topic", "perm").withColumns(
        {"read_queue_nums": F.lit("4"), "broker_ids": F.array(F.lit("0"))}
    )

    with pytest.raises(ContractError) as raised:
        check_contract(TOPIC_ROUTES, wrong)

    first, *problems = str(raised.value).splitlines()
    assert first.startswith("table topic_routes (cluster, snapshot_time, namesrv_addr, ")
    assert problems == [
        "  topic: expected string, is missing",
        "  broker_ids: expected array<bigint>, came array<string>",
        "  perm: expected int, is missing",
        "  read_queue_nums: expected int, came string",
    ]


def test_a_struct_without_one_of_its_fields_is_a_mistyped_column(spark):
    heartbeats = frame(spark, HEARTBEATS, [heartbeat_row()]).withColumn(
        "subscriptions", F.array(F.struct(F.lit("T").alias("topic")))
    )

    with pytest.raises(ContractError, match="subscriptions: expected array<struct<topic:string"):
        check_contract(HEARTBEATS, heartbeats)


def test_columns_that_may_be_null_may_be_missing_and_unknown_ones_are_left_out(spark):
    heartbeats = frame(spark, HEARTBEATS, [heartbeat_row(language=None, version=None)])
    fewer = heartbeats.drop("language", "version", "strategy").withColumn("more", F.lit(1))

    assert_df_equality(check_contract(HEARTBEATS, fewer), heartbeats, ignore_nullable=True)


def test_numbers_of_another_width_and_columns_in_another_order_fit(spark):
    routes = frame(spark, TOPIC_ROUTES, [route_row()])
    other = routes.select(
        *[
            F.col(name).cast("bigint" if name == "perm" else routes.schema[name].dataType)
            for name in reversed(routes.columns)
        ]
    ).withColumn("broker_ids", F.array(F.lit(0)))

    assert_df_equality(check_contract(TOPIC_ROUTES, other), routes, ignore_nullable=True)


def test_the_fields_of_structs_are_matched_by_name(spark):
    heartbeats = frame(spark, HEARTBEATS, [heartbeat_row()])
    shuffled = heartbeats.withColumn(
        "subscriptions",
        F.transform(
            "subscriptions",
            lambda each: F.struct(
                each["expression"].alias("expression"),
                F.lit("more").alias("more"),
                each["topic"].alias("topic"),
                each["expression_type"].alias("expression_type"),
            ),
        ),
    )

    assert_df_equality(check_contract(HEARTBEATS, shuffled), heartbeats, ignore_nullable=True)
