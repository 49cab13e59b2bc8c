"""The bodies: the exact text that RocketMQ's servers send, as typed columns.

Spark's own parser reads what is JSON or nearly so (unquoted integer keys). Maps whose keys are
objects, and ``$ref``, are read by no JSON parser: such bodies, and log lines, go through Python
first, and come out as standard JSON for the same parser and the same schemas.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import pandas_udf

from jobs.dumps.client_log import ClientLogError, parse_rebalance_line
from jobs.dumps.fastjson import FastjsonError, to_standard_json

HEARTBEAT = "heartbeat"
CONSUMER_CONNECTION = "consumer_connection"
TOPIC_ROUTE = "topic_route"
CONSUMER_RUNNING_INFO = "consumer_running_info"
CONSUME_STATS = "consume_stats"
CLIENT_LOG = "client_log"

KINDS = (
    HEARTBEAT,
    CONSUMER_CONNECTION,
    TOPIC_ROUTE,
    CONSUMER_RUNNING_INFO,
    CONSUME_STATS,
    CLIENT_LOG,
)

_SUBSCRIPTION = "struct<topic:string,subString:string,expressionType:string>"
_QUEUE = "struct<topic:string,brokerName:string,queueId:int>"

#: The fields that are read of each body, in RocketMQ's spelling (remoting/protocol, 5.3.3).
BODY_FIELDS = {
    HEARTBEAT: (
        "clientID:string,withoutSub:boolean,consumerDataSet:array<struct<groupName:string,"
        "consumeType:string,messageModel:string,"
        f"subscriptionDataSet:array<{_SUBSCRIPTION}>>>"
    ),
    CONSUMER_CONNECTION: (
        "connectionSet:array<struct<clientId:string,clientAddr:string,language:string,"
        "version:int>>,consumeType:string,messageModel:string,"
        f"subscriptionTable:map<string,{_SUBSCRIPTION}>"
    ),
    TOPIC_ROUTE: (
        "brokerDatas:array<struct<brokerName:string,brokerAddrs:map<string,string>,"
        "zoneName:string>>,"
        "queueDatas:array<struct<brokerName:string,perm:int,readQueueNums:int,"
        "writeQueueNums:int>>,topicQueueMappingByBroker:map<string,struct<bname:string,"
        "scope:string,totalQueues:int>>"
    ),
    CONSUMER_RUNNING_INFO: (
        f"properties:map<string,string>,subscriptionSet:array<{_SUBSCRIPTION}>,"
        f"mqTable:array<struct<key:{_QUEUE},value:struct<droped:boolean,"
        "lastPullTimestamp:bigint>>>"
    ),
    CONSUME_STATS: (
        f"offsetTable:array<struct<key:{_QUEUE},value:struct<brokerOffset:bigint,"
        "consumerOffset:bigint,lastTimestamp:bigint>>>"
    ),
}

_CORRUPT = "_corrupt"


def parse_body(kind: str, body: Column) -> Column:
    """The body as Spark reads it: the kind's fields, bare or under the dashboard's ``data``.

    To be selected as a column of its own before ``unwrap_body`` takes it apart: then it is parsed
    once, and not once per field.
    """
    fields = BODY_FIELDS[kind]
    schema = f"struct<{fields},status:int,errMsg:string,data:struct<{fields}>,{_CORRUPT}:string>"
    options = {"columnNameOfCorruptRecord": _CORRUPT, "allowUnquotedFieldNames": "true"}
    return F.from_json(body, schema, options)


def unwrap_body(kind: str, parsed: Column) -> Column:
    """The kind's fields, ``status``, ``errMsg`` and ``_corrupt``, as one struct; null stays null.

    The dashboard wraps a body as ``{"status":0,"data":...,"errMsg":null}``: what is under ``data``
    comes out as if it stood alone, and ``status`` and ``errMsg`` tell of an error. ``_corrupt`` is
    the text of a body that is not of that form.
    """
    names = [field.split(":")[0] for field in _top_level(BODY_FIELDS[kind])]
    unwrapped = F.struct(
        *[F.coalesce(parsed[name], parsed["data"][name]).alias(name) for name in names],
        *[parsed[name].alias(name) for name in ("status", "errMsg", _CORRUPT)],
    )
    return F.when(parsed.isNotNull(), unwrapped)


def _top_level(fields: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, character in enumerate(fields):
        if character == "<":
            depth += 1
        elif character == ">":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(fields[start:position])
            start = position + 1
    return [*parts, fields[start:]]


_LOG_QUEUE = T.StructType(
    [
        T.StructField("topic", T.StringType()),
        T.StructField("broker_name", T.StringType()),
        T.StructField("queue_id", T.IntegerType()),
    ]
)

REBALANCE = T.StructType(
    [
        T.StructField("strategy", T.StringType()),
        T.StructField("consumer_group", T.StringType()),
        T.StructField("topic", T.StringType()),
        T.StructField("client_id", T.StringType()),
        T.StructField("queue_count", T.IntegerType()),
        T.StructField("client_count", T.IntegerType()),
        T.StructField("by_broker", T.BooleanType()),
        T.StructField("logged_at", T.StringType()),
        T.StructField("queues", T.ArrayType(_LOG_QUEUE)),
    ]
)

_IN_PYTHON = T.StructType(
    [
        T.StructField("body", T.StringType()),
        T.StructField("rebalance", REBALANCE),
        T.StructField("problem", T.StringType()),
    ]
)


def _read_one(kind: str, body: str | None) -> dict[str, Any]:
    if body is None:
        return {"body": None, "rebalance": None, "problem": None}
    try:
        if kind == CLIENT_LOG:
            return {"body": None, "rebalance": _rebalance(body), "problem": None}
        return {"body": to_standard_json(body), "rebalance": None, "problem": None}
    except (FastjsonError, ClientLogError) as error:
        return {"body": None, "rebalance": None, "problem": str(error)}


def _rebalance(line: str) -> dict[str, Any] | None:
    result = parse_rebalance_line(line)
    if result is None:
        return None
    return {
        "strategy": result.strategy,
        "consumer_group": result.consumer_group,
        "topic": result.topic,
        "client_id": result.client_id,
        "queue_count": result.queue_count,
        "client_count": result.client_count,
        "by_broker": result.by_broker,
        "logged_at": result.logged_at,
        "queues": [
            {"topic": topic, "broker_name": broker_name, "queue_id": queue_id}
            for topic, broker_name, queue_id in result.queues
        ],
    }


def read_in_python(kinds: pd.Series, bodies: pd.Series) -> pd.DataFrame:
    """The bodies that Spark cannot read, as standard JSON, log line or problem; null stays null."""
    rows = [_read_one(kind, body) for kind, body in zip(kinds, bodies, strict=True)]
    return pd.DataFrame(rows, columns=_IN_PYTHON.names)


def needs_python(kind: Column, body: Column) -> Column:
    """Whether a body goes through Python: kinds with object keys, log lines, ``$ref``, ``{{``."""
    always = kind.isin(CONSUMER_RUNNING_INFO, CONSUME_STATS, CLIENT_LOG)
    return always | body.rlike(r'\{\s*\{|"\$ref"')


#: The UDF: (kind, body or null) -> struct<body, rebalance, problem>.
#: The overloads know only functionType, which warns; the kind follows from the type hints.
in_python = pandas_udf(read_in_python, _IN_PYTHON)  # type: ignore[call-overload]
