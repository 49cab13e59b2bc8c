"""dump files -> lines -> rows: every line of every file as it came, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from jobs.bounds import DEFAULT_BOUNDS, Bounds
from jobs.dumps.rows import LINES, ROWS_DDL, to_rows
from jobs.dumps.statement import CLIENT_LOG
from jobs.dumps.times import DAY, PlausibleTimes
from jobs.session import AS_NAMED

#: Hadoop's usual local file system opens a file of checksums beside each file, and fails where the
#: name has a colon in it, as times have. Nobody writes such checksums for dumps.
_ANY_LOCAL_NAME = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


#: What Hadoop calls the longest line; its reader skips what is longer, and holds no more of it.
_LONGEST_LINE = "mapreduce.input.linerecordreader.line.maxlength"


def read_lines(
    spark: SparkSession, paths: Sequence[str], bounds: Bounds = DEFAULT_BOUNDS
) -> DataFrame:
    """One row per line: ``file``, ``block`` and ``row`` (which together give its number), ``line``.

    ``paths`` are files, by their very names. Lines end at a line feed alone, so that a carriage
    return stays where it was. ``row`` counts on within one block of one file; see ``number_lines``.
    Lines beyond ``bounds.line_bytes`` are left out: ``bytes_of_files`` shows that they are.
    """
    # The line feed counts, and the longest line is the first that is skipped.
    longest = {_LONGEST_LINE: str(bounds.line_bytes + 2)}
    return (
        spark.read.options(**AS_NAMED, **_ANY_LOCAL_NAME, **longest)
        .option("lineSep", "\n")
        .option("recursiveFileLookup", "true")
        .text(list(paths))
        .select(
            F.col("_metadata.file_path").alias("file"),
            F.col("_metadata.file_block_start").alias("block"),
            F.monotonically_increasing_id().alias("row"),
            F.col("value").alias("line"),
        )
    )


def no_lines(spark: SparkSession) -> DataFrame:
    """What ``read_lines`` gives of no file at all."""
    return spark.createDataFrame([], "file string, block bigint, row bigint, line string")


def read_statements(
    lines: DataFrame,
    bounds: Bounds = DEFAULT_BOUNDS,
    plausible: PlausibleTimes | None = None,
    archives: Mapping[str, int] | None = None,
) -> DataFrame:
    """``rows.ROWS`` of ``read_lines``: each line read once, in the task that has it.

    ``archives``: the bytes of each .gz, by the URI of the column ``file``: see ``to_rows``.

    Spark splits plain files by itself. A .gz is one task, whatever its size, and its rows stay
    there: the step that follows brings them to their groups anyway, one exchange is enough.
    """
    # Java names a local file in two ways; the column has the shorter one.
    files = sorted(file.replace("file:///", "file:/", 1) for file in lines.inputFiles())

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return to_rows(batches, files, bounds, plausible, archives)

    # As bytes: what is no UTF-8 would not come through as a text.
    as_bytes = lines.withColumn("line", F.col("line").cast("binary"))
    return as_bytes.select(*LINES.names).mapInArrow(read, ROWS_DDL)


def bytes_of_files(rows: DataFrame) -> dict[str, int]:
    """By file the bytes of the lines that came, each with a line feed."""
    counted = rows.where("lines is not null").groupBy("file").agg(F.sum("bytes"))
    return {str(row[0]): int(row[1]) for row in counted.collect()}


def count_days(rows: DataFrame) -> dict[tuple[bool, int], int]:
    """The number of statements by whether they are log lines, and by day of ``collected_at``."""
    # No division of doubles: whole days, also before 1970.
    day = f"(collected_at - pmod(collected_at, {DAY}L)) DIV {DAY}L"
    counted = rows.where("kind IS NOT NULL").groupBy(F.expr(f"kind = '{CLIENT_LOG}'"), F.expr(day))
    return {(bool(row[0]), int(row[1])): int(row[2]) for row in counted.count().collect()}


def blocks_of(rows: DataFrame) -> DataFrame:
    """One row per file and block: ``first_row`` and the number of ``lines``, for number_lines."""
    return rows.where("lines is not null").select(
        "file", "block", F.col("row").alias("first_row"), "lines"
    )


def number_lines(lines: DataFrame, blocks: DataFrame) -> DataFrame:
    """Adds ``line_number``, counted from 1 in each file.

    A file is read in blocks, each of which has only the order of its rows. ``blocks``
    (``blocks_of``) has for each its first row and its number of lines; those of the blocks before
    are added up.
    """
    before = Window.partitionBy("file").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    offsets = blocks.select(
        "file",
        "block",
        "first_row",
        F.coalesce(F.sum("lines").over(before), F.lit(0)).alias("lines_before"),
    )
    return lines.join(offsets, ["file", "block"], "inner").withColumn(
        "line_number", F.col("lines_before") + F.col("row") - F.col("first_row") + 1
    )
