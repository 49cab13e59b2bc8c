"""The session of a command, as far as it needs no Java."""

from __future__ import annotations

import io
import logging

import pytest

from jobs.spark.session import _without_words_of_py4j


@pytest.mark.parametrize("verbose", [False, True])
def test_what_py4j_logs_is_shown_with_verbose_alone(verbose: bool) -> None:
    # py4j calls logging.info() too, which gives the root logger a handler for all loggers.
    handler = logging.StreamHandler(io.StringIO())
    root, of_py4j = logging.getLogger(), logging.getLogger("py4j.clientserver")
    root.addHandler(handler)
    try:
        with _without_words_of_py4j(verbose):
            of_py4j.error("Exception while sending command.")
        assert bool(handler.stream.getvalue()) == verbose
        of_py4j.error("after")
        logging.getLogger("jobs").error("of another")
    finally:
        root.removeHandler(handler)
    assert handler.stream.getvalue().endswith("after\nof another\n")
