"""Report tables as tables of Iceberg, by PyIceberg: in one namespace of a catalog."""

from __future__ import annotations

import warnings
from contextlib import suppress

import pyarrow as pa

from ..errors import InputError
from ..extras import library
from ..reports.read import DATE, dated_schema
from ..schemas import Table, comment_of
from ..text import visible
from .lake import RUN_ID, Replace, check_fits, in_words


class IcebergLake:
    """A namespace of a catalog, as ``prod.rebalance_audit``.

    Where the catalog is, and who may use it, is PyIceberg's configuration: ``~/.pyiceberg.yaml``,
    or PYICEBERG_CATALOG__PROD__URI and the like. InputError where there is no such catalog.
    """

    def __init__(self, name: str) -> None:
        library("pyiceberg", "iceberg")
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - an extra

        catalog, _, self._namespace = name.partition(".")
        self._name = visible(name)
        if not catalog or not self._namespace:
            raise InputError(
                f"expected a catalog and a namespace, as prod.rebalance_audit, came {self._name}"
            )
        with in_words(f"Iceberg catalog {visible(catalog)}"):
            try:
                self._catalog = load_catalog(catalog)
            except ValueError as error:
                raise InputError(
                    f"no Iceberg catalog {visible(catalog)}: {error}; its address goes into "
                    "~/.pyiceberg.yaml or the environment, see docs/lakes.md"
                ) from error
            # Whoever may write tables may not be allowed to make a namespace.
            if not self._catalog.namespace_exists(self._namespace):
                self._catalog.create_namespace_if_not_exists(self._namespace)

    def __str__(self) -> str:
        return self._name

    def open(self, table: Table) -> Replace:
        """What changes the table as it is now; it is made where there is none."""
        from pyiceberg.exceptions import (  # noqa: PLC0415 - an extra
            CommitFailedException,
            TableAlreadyExistsError,
            ValidationException,
        )

        name, place = f"{self._namespace}.{table.name}", f"Iceberg table {self._name}.{table.name}"
        with in_words(place):
            if not self._catalog.table_exists(name):
                # Another export may make it meanwhile.
                with (
                    suppress(CommitFailedException, TableAlreadyExistsError),
                    self._catalog.create_table_transaction(
                        name, _documented(dated_schema(table)), properties={"comment": table.grain}
                    ) as creating,
                    creating.update_spec() as partitions,
                ):
                    partitions.add_identity(DATE.name)
            found = self._catalog.load_table(name)
            check_fits(found.schema().as_arrow(), table, place)

        def replace(date: str, run_id: str, rows: pa.Table) -> None:
            conflicts = (CommitFailedException, ValidationException)
            with in_words(place, conflicts), warnings.catch_warnings():
                # A date that has no rows yet is nothing to warn of.
                warnings.filterwarnings("ignore", "Delete operation did not match any records")
                with found.transaction() as change:
                    with change.update_schema() as columns:
                        columns.union_by_name(_documented(rows.schema))
                    change.overwrite(
                        rows, f"{DATE.name} = '{date}'", snapshot_properties={RUN_ID: run_id}
                    )

        return replace


def _documented(schema: pa.Schema) -> pa.Schema:
    """The schema with its comments where PyIceberg looks for them."""
    return pa.schema([column.with_metadata({"doc": comment_of(column)}) for column in schema])
