"""Report tables as tables of Delta Lake, by delta-rs: a folder for each below one folder."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from ..errors import InputError
from ..extras import library
from ..reports.read import DATE, dated_schema
from ..schemas import Table
from ..storage import Location
from .lake import RUN_ID, check_fits, in_words

if TYPE_CHECKING:
    from deltalake import DeltaTable

_S3 = ("s3", "s3a", "s3n")
#: The options that a URI of S3 may have, as PyArrow names them.
_S3_OPTIONS = ("endpoint_override", "region", "scheme")
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

    def open(self, table: Table) -> _Version:
        """The table as it is now; it is made where there is none."""
        from deltalake import DeltaTable  # noqa: PLC0415 - an extra
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
        return _Version(found, place)


class _Version(NamedTuple):
    table: DeltaTable
    place: str

    def replace(self, date: str, rows: pa.Table, run_id: str) -> None:
        from deltalake import CommitProperties, write_deltalake  # noqa: PLC0415 - an extra
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

        with in_words(self.place, (CommitFailedError,)):
            write_deltalake(
                self.table,
                rows,
                mode="overwrite",
                predicate=f"{DATE.name} = DATE '{date}'",
                schema_mode="merge",
                commit_properties=CommitProperties(custom_metadata={RUN_ID: run_id}),
            )


def address_of(uri: str) -> tuple[str, dict[str, str]]:
    """delta-rs' address and options for a URI as PyArrow has it; InputError for other options.

    What a URI of S3 does not say comes from the environment: AWS_ACCESS_KEY_ID, AWS_REGION, ...

    >>> address_of("s3a://key:se%2Fcret@lake/audit?endpoint_override=minio:9000&scheme=http")
    ... # doctest: +NORMALIZE_WHITESPACE
    ('s3://lake/audit', {'aws_access_key_id': 'key', 'aws_secret_access_key': 'se/cret',
     'aws_endpoint_url': 'http://minio:9000', 'aws_allow_http': 'true'})
    >>> address_of("abfss://lake@account.dfs.core.windows.net/audit")
    ('abfss://lake@account.dfs.core.windows.net/audit', {})
    """
    address, _, query = uri.partition("?")
    given = dict(parse_qsl(query))
    parts = urlsplit(address, allow_fragments=False)
    is_s3 = parts.scheme in _S3
    others = given.keys() - (_S3_OPTIONS if is_s3 else ())
    if others:
        raise InputError(
            f"Delta Lake does not know the option {min(others)} of the address: expected "
            + (", ".join(_S3_OPTIONS) if is_s3 else "none; give it in the environment")
        )
    if not is_s3:
        return address.rstrip("/"), {}
    key, _, secret = parts.netloc.rpartition("@")[0].partition(":")
    scheme, endpoint = given.get("scheme", "https"), given.get("endpoint_override")
    options = {
        "aws_access_key_id": unquote(key),
        "aws_secret_access_key": unquote(secret),
        "aws_region": given.get("region"),
        "aws_endpoint_url": endpoint and f"{scheme}://{endpoint}",
        "aws_allow_http": "true" if scheme == "http" else None,
    }
    bucket = parts.netloc.rpartition("@")[2]
    return f"s3://{bucket}{parts.path}".rstrip("/"), {
        name: value for name, value in options.items() if value
    }
