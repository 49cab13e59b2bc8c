"""lines -> records: the envelope and the body of every line, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.dumps.bodies import (
    CLIENT_LOG,
    CONSUME_STATS,
    CONSUMER_CONNECTION,
    CONSUMER_RUNNING_INFO,
    HEARTBEAT,
    KINDS,
    TOPIC_ROUTE,
    in_python,
    needs_python,
    parse_body,
    unwrap_body,
)

_TEXTS = (
    "kind",
    "cluster",
    "broker_name",
    "broker_addr",
    "consumer_group",
    "client_id",
    "client_addr",
    "language",
    "namesrv_addr",
    "topic",
    "process",
    "error_message",
    "body",
)
_NUMBERS = {"broker_id": "bigint", "version": "int", "error_code": "int"}
_TIMES = ("snapshot_time", "collected_at")
_ENVELOPE = (*_TEXTS, *_NUMBERS, *_TIMES)

#: What each kind's envelope must have besides ``kind``, ``cluster`` and ``collected_at``.
REQUIRED = {
    HEARTBEAT: ("broker_name", "broker_id", "client_addr"),
    CONSUMER_CONNECTION: ("snapshot_time", "broker_name", "broker_id", "consumer_group"),
    TOPIC_ROUTE: ("snapshot_time", "namesrv_addr", "topic"),
    CONSUMER_RUNNING_INFO: ("snapshot_time", "consumer_group", "client_id"),
    CONSUME_STATS: ("snapshot_time", "consumer_group"),
    CLIENT_LOG: (),
}
#: Kinds that may come as ``error_code`` and ``error_message`` in place of a body.
MAY_FAIL = (CONSUMER_CONNECTION, TOPIC_ROUTE, CONSUMER_RUNNING_INFO, CONSUME_STATS)

#: More queues than this on one broker is no route but a damaged number.
MOST_QUEUES = 100_000

_END_OF_LINE = "end of line"


def read_records(lines: DataFrame) -> DataFrame:
    """One row per line: its envelope, its body as a struct named by its kind, or a ``reason``.

    ``reason`` is null for a line that was understood; else it says what was expected and what
    came, and nothing else of the row counts.
    """
    text = F.regexp_replace("line", "^\ufeff", "")
    enveloped = lines.select("*", _envelope(text).alias("_elements"), text.alias("_text")).select(
        *lines.columns, "_text", "_elements", *[_field(name) for name in _ENVELOPE]
    )
    problem = F.coalesce(*_envelope_problems())
    checked = enveloped.withColumn("_problem", problem).drop("_elements", "_text")
    body = F.when(F.col("_problem").isNull(), F.col("body"))
    to_python = F.when(needs_python(F.col("kind"), body), body)
    read = checked.withColumn("_python", in_python(F.col("kind"), to_python))
    standard = F.coalesce(F.col("_python.body"), F.when(to_python.isNull(), body))
    with_bodies = [kind for kind in KINDS if kind != CLIENT_LOG]
    kept = [name for name in read.columns if name not in ("body", "_python")]
    # Each step is a select of its own so that what is costly is computed once (see parse_body).
    parsed = read.select(
        *kept,
        *[
            F.when(F.col("kind") == kind, parse_body(kind, standard)).alias(f"_{kind}")
            for kind in with_bodies
        ],
        F.when(F.col("kind") == CLIENT_LOG, F.col("_python.rebalance")).alias(CLIENT_LOG),
        F.col("_python.problem").alias("_unreadable"),
        body.isNotNull().alias("_has_body"),
    )
    unwrapped = parsed.select(
        *kept,
        CLIENT_LOG,
        "_unreadable",
        "_has_body",
        *[unwrap_body(kind, F.col(f"_{kind}")).alias(kind) for kind in with_bodies],
    )
    reason = F.coalesce("_problem", *_body_problems())
    return unwrapped.withColumn("reason", reason).drop("_problem", "_unreadable", "_has_body")


def _envelope(text: Column) -> Column:
    """The line as an array of its one object and an end mark.

    Spark's parser stops after the first value and ignores what follows it: within an array, with
    a mark at its end, anything more than one object is seen.
    """
    fields = ",".join(f"{name}:string" for name in _ENVELOPE)
    wrapped = F.concat(F.lit("["), text, F.lit(f',{{"kind":"{_END_OF_LINE}"}}]'))
    return F.from_json(wrapped, f"array<struct<{fields}>>")


def _field(name: str) -> Column:
    text = F.get(F.col("_elements"), F.lit(0))[name]
    if name in _NUMBERS:
        return F.when(text.rlike(r"^-?\d{1,18}$"), text.try_cast(_NUMBERS[name])).alias(name)
    if name in _TIMES:
        # A time without a zone could be any: only ISO 8601 with Z or an offset is an instant.
        iso = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})$"
        return F.when(text.rlike(iso), F.try_to_timestamp(text)).alias(name)
    return text.alias(name)


def _envelope_problems() -> list[Column]:
    elements = F.col("_elements")
    is_one_object = (
        (F.size(elements) == 2)
        & F.get(elements, F.lit(0)).isNotNull()
        & (F.get(elements, F.lit(1))["kind"] == F.lit(_END_OF_LINE))
    )
    problems = [
        F.when(~F.is_valid_utf8("line"), F.lit("expected UTF-8 text, came bytes that are none")),
        F.when(
            F.trim(F.regexp_replace("_text", r"\s", "")) == "",
            F.lit("expected a JSON object, came an empty line"),
        ),
        F.when(
            ~F.coalesce(is_one_object, F.lit(False)),
            _said("expected one JSON object, came", F.col("_text")),
        ),
        F.when(
            F.col("kind").isNull() | ~F.col("kind").isin(*KINDS),
            _said(f"expected kind to be one of {', '.join(KINDS)}, came", F.col("kind")),
        ),
    ]
    for name in ("cluster", "collected_at"):
        problems.append(_missing(name, F.lit(True)))
    for kind, names in REQUIRED.items():
        problems += [_missing(name, F.col("kind") == kind) for name in names]
    raw_error = F.get(elements, F.lit(0))["error_code"]
    may_fail = F.col("kind").isin(*MAY_FAIL)
    no_body = F.col("body").isNull()
    problems += [
        F.when(
            raw_error.isNotNull() & F.col("error_code").isNull(),
            _said("expected error_code to be an integer, came", raw_error),
        ),
        F.when(
            no_body & ~(may_fail & F.coalesce(F.col("error_code") != 0, F.lit(False))),
            F.when(may_fail, F.lit("expected body or error_code, came neither")).otherwise(
                F.lit("expected body, came none")
            ),
        ),
    ]
    return problems


def _missing(name: str, applies: Column) -> Column:
    expected = (
        "an integer"
        if name in _NUMBERS
        else "a time as ISO 8601 with zone"
        if name in _TIMES
        else "a text that is not empty"
    )
    raw = F.get(F.col("_elements"), F.lit(0))[name]
    absent = F.col(name).isNull() if name not in _TEXTS else F.coalesce(raw, F.lit("")) == ""
    return F.when(applies & absent, _said(f"expected {name} to be {expected}, came", raw))


def _said(expectation: str, came: Column) -> Column:
    """``expected ..., came '...'``, with no more than the beginning of what came."""
    start = F.substring(came, 1, 60)
    shown = F.when(F.length(came) > 60, F.concat(start, F.lit("..."))).otherwise(start)
    return F.concat(
        F.lit(expectation + " "),
        F.coalesce(F.concat(F.lit("'"), shown, F.lit("'")), F.lit("nothing")),
    )


def _body_problems() -> list[Column]:
    problems = [
        F.when(F.col("_unreadable").isNotNull(), F.concat(F.lit("body: "), F.col("_unreadable")))
    ]
    for kind in KINDS:
        if kind == CLIENT_LOG:
            continue
        body = F.col(kind)
        of_kind = (F.col("kind") == kind) & F.col("_has_body")
        problems.append(
            F.when(
                of_kind & (body.isNull() | body["_corrupt"].isNotNull()),
                _said(f"body: expected {_NAMES[kind]}, came", body["_corrupt"]),
            )
        )
        in_order = F.coalesce(body["status"], F.lit(0)) == 0
        problems += [
            F.when(of_kind & in_order & F.coalesce(is_wrong, F.lit(True)), F.lit(f"body: {text}"))
            for is_wrong, text in _wrong(kind, body)
        ]
    return problems


_NAMES = {
    HEARTBEAT: "HeartbeatData",
    CONSUMER_CONNECTION: "ConsumerConnection",
    TOPIC_ROUTE: "TopicRouteData",
    CONSUMER_RUNNING_INFO: "ConsumerRunningInfo",
    CONSUME_STATS: "ConsumeStats",
}


def _wrong(kind: str, body: Column) -> Sequence[tuple[Column, str]]:
    """For each demand on a body: whether it is not met, and the demand in words."""
    if kind == HEARTBEAT:
        groups = F.coalesce(body["consumerDataSet"], F.array())
        return [
            (_blank(body["clientID"]), "expected HeartbeatData with a clientID"),
            (
                F.exists(groups, lambda each: _blank(each["groupName"])),
                "expected every consumerDataSet to have a groupName",
            ),
        ]
    if kind == CONSUMER_CONNECTION:
        return [
            (body["connectionSet"].isNull(), "expected ConsumerConnection with a connectionSet"),
            (
                F.exists(
                    body["connectionSet"],
                    lambda each: _blank(each["clientId"]) | _blank(each["clientAddr"]),
                ),
                "expected every connection to have a clientId and a clientAddr",
            ),
        ]
    if kind == TOPIC_ROUTE:
        queues = F.coalesce(body["queueDatas"], F.array())
        return [
            (
                body["queueDatas"].isNull() & body["brokerDatas"].isNull(),
                "expected TopicRouteData with queueDatas and brokerDatas",
            ),
            (
                F.exists(
                    F.coalesce(body["brokerDatas"], F.array()),
                    lambda each: _blank(each["brokerName"]),
                ),
                "expected every brokerData to have a brokerName",
            ),
            (
                F.exists(
                    queues,
                    lambda each: (
                        _blank(each["brokerName"])
                        | each["perm"].isNull()
                        | ~F.coalesce(each["readQueueNums"].between(0, MOST_QUEUES), F.lit(False))
                        | ~F.coalesce(each["writeQueueNums"].between(0, MOST_QUEUES), F.lit(False))
                    ),
                ),
                "expected every queueData to have a brokerName, a perm, and readQueueNums and "
                f"writeQueueNums of 0 to {MOST_QUEUES}",
            ),
        ]
    if kind == CONSUMER_RUNNING_INFO:
        return [
            (
                body["properties"].isNull() & body["mqTable"].isNull(),
                "expected ConsumerRunningInfo with properties and an mqTable",
            )
        ]
    return [(body["offsetTable"].isNull(), "expected ConsumeStats with an offsetTable")]


def _blank(text: Column) -> Column:
    return F.coalesce(text, F.lit("")) == ""
