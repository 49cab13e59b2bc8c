"""The truth that the consumer processes of the sample dumps wrote down of themselves."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

Queue = tuple[str, int]

TRUTH = Path(__file__).parent.parent / "data" / "truth"
CAPTURES = Path(__file__).parent.parent / "data" / "captures"
SAMPLE_SETTINGS = CAPTURES.parent / "sample.toml"
SITUATIONS = tuple(sorted(path.name for path in TRUTH.iterdir()))


@dataclass(frozen=True)
class TopicTruth:
    """What was really so in one round, for one topic."""

    situation: str
    step: str
    full: bool
    time: datetime
    consumer_group: str
    topic: str
    orphans: frozenset[Queue]
    #: By queue the number of processes that held it, where there were several.
    duplicates: dict[Queue, int]
    #: By client id what each of its processes held.
    held: dict[str, list[list[Queue]]]

    def __str__(self) -> str:
        return f"{self.situation} {self.step} {self.topic}"


def rounds(situation: str) -> Iterator[TopicTruth]:
    """Every topic of every round of a situation."""
    folder = TRUTH / situation
    labels = json.loads((folder / "truth.json").read_text())["client_ids"]
    with gzip.open(folder / "truth_rounds.json.gz", "rt") as stream:
        by_time = json.load(stream)
    for time, round_ in by_time.items():
        for group, of_group in round_["groups"].items():
            for topic, truth in of_group["topics"].items():
                held: dict[str, list[list[Queue]]] = {}
                for label, queues in truth["held"].items():
                    held.setdefault(labels[label][group], []).append(
                        sorted((broker, number) for broker, number in queues)
                    )
                yield TopicTruth(
                    situation=situation,
                    step=round_["step"],
                    full=round_["full"],
                    time=datetime.fromisoformat(time),
                    consumer_group=group,
                    topic=topic,
                    orphans=frozenset((broker, number) for broker, number in truth["orphans"]),
                    duplicates={
                        (broker, number): len(processes)
                        for broker, number, processes in truth["duplicates"]
                    },
                    held=held,
                )
