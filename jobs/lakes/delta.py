"""Report tables as tables of Delta Lake, by delta-rs: a folder for each below one folder."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa

from ..errors import InputError
from ..extras import library
from ..reports.read import DATE, dated_schema
from ..schemas import Table
from ..storage import Location
from ..storage.conditional import S3_SCHEMES, s3_options
from .lake import RUN_ID, Replace, check_fits, in_words

#: The options that a URI of S3 may have, as PyArrow names them.
_S3_OPTIONS = ("endpoint_override", "region", "scheme")
#: What delta-rs names otherwise than boto3.
_NAMES = {"endpoint_url": "aws_endpoint_url", "region_name": "aws_region"}
#: With these in a path delta-rs 1.6 fails, or writes elsewhere.
_REFUSED = re.compile(r"[%\[\]^|\\\x00-\x1f\x7f]")


class DeltaLake:
    """The folder, by the same path or URI that reports have."""

    def __init__(self, output: str) -> None:
        library("deltalake", "delta")
        self._output = Location(output)
        refused = _REFUSED.search(self._output.base)
        if refused:
            raise InputError(
                f"Delta's library takes no path with {refused[0]!r} in it, came {self._output}: "
                "export to another folder"
            )
        self._root, self._options = self._output.base, dict[str, str]()
        if not self._output.is_local:
            self._root, self._options = address_of(self._output.uri)

    def __str__(self) -> str:
        return str(self._output)

    def open(self, table: Table) -> Replace:
        """What changes the table as it is now; it is made where there is none."""
        from deltalake import (  # noqa: PLC0415 - an extra
            CommitProperties,
            DeltaTable,
            write_deltalake,
        )
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

        uri, place = f"{self._root}/{table.name}", f"Delta table {self._output / table.name}"
        with in_words(place):
            if not DeltaTable.is_deltatable(uri, self._options):
                with suppress(CommitFailedError):  # another export made it
                    DeltaTable.create(
                        uri,
                        dated_schema(table),
                        mode="ignore",
                        partition_by=[DATE.name],
                        description=table.grain,
                        storage_options=self._options,
                    )
            found = DeltaTable(uri, storage_options=self._options)
            columns: Any = found.schema().to_arrow()  # of arro3, which PyArrow takes
            check_fits(pa.schema(columns), table, place)

        def replace(date: str, run_id: str, rows: pa.Table) -> None:
            with in_words(place, (CommitFailedError,)):
                write_deltalake(
                    found,
                    rows,
                    mode="overwrite",
                    predicate=f"{DATE.name} = DATE '{date}'",
                    schema_mode="merge",
                    commit_properties=CommitProperties(custom_metadata={RUN_ID: run_id}),
                )

        return replace


def address_of(uri: str) -> tuple[str, dict[str, str]]:
    """delta-rs' address and options for a URI as PyArrow has it; InputError for other options.

    What a URI of S3 does not say comes from the environment: AWS_ACCESS_KEY_ID, AWS_REGION, ...

    >>> address_of("s3a://key:se%2Fcret@lake/audit?endpoint_override=minio:9000&scheme=http")
    ... # doctest: +NORMALIZE_WHITESPACE
    ('s3://lake/audit', {'aws_endpoint_url': 'http://minio:9000', 'aws_access_key_id': 'key',
     'aws_secret_access_key': 'se/cret', 'aws_allow_http': 'true'})
    >>> address_of("abfss://lake@account.dfs.core.windows.net/audit")
    ('abfss://lake@account.dfs.core.windows.net/audit', {})
    """
    address, _, query = uri.partition("?")
    given = dict(parse_qsl(query))
    parts = urlsplit(address, allow_fragments=False)
    is_s3 = parts.scheme in S3_SCHEMES
    others = given.keys() - (_S3_OPTIONS if is_s3 else ())
    if others:
        raise InputError(
            f"Delta Lake does not know the option {min(others)} of the address: expected "
            + (", ".join(_S3_OPTIONS) if is_s3 else "none; give it in the environment")
        )
    if not is_s3:
        return address.rstrip("/"), {}
    options = {_NAMES.get(name, name): value for name, value in s3_options(uri).items()}
    if given.get("scheme") == "http":
        options["aws_allow_http"] = "true"
    bucket = parts.netloc.rpartition("@")[2]
    return f"s3://{bucket}{parts.path}".rstrip("/"), options
