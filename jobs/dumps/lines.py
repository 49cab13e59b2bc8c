"""dump files -> lines: every line of every file as it came, with its file and its number."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F


def read_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """One row per line: ``file``, ``block`` and ``row`` (which together give its number), ``line``.

    Lines end at a line feed alone, so that a carriage return stays where it was. ``row`` counts on
    within one block of one file; see ``number_lines``.
    """
    return (
        spark.read.option("lineSep", "\n")
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


def number_lines(lines: DataFrame, blocks: DataFrame) -> DataFrame:
    """Adds ``line_number``, counted from 1 in each file.

    A file is read in blocks, each of which knows only the order of its own rows. ``blocks`` has
    for each file and block its first row and its number of lines (``count_blocks``); the lines of
    the blocks before are added up.
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


def count_blocks(lines: DataFrame) -> DataFrame:
    """One row per file and block: ``first_row`` and the number of ``lines``."""
    return lines.groupBy("file", "block").agg(
        F.min("row").alias("first_row"), F.count(F.lit(1)).alias("lines")
    )
