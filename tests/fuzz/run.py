"""Runs the properties of this folder for as long as one likes: ``make fuzz SECONDS=600``.

Every property gets an equal share of the time and other inputs in each run. Prints how many inputs
each saw. Of a property that fails it prints the smallest input that hypothesis found, and how to
run it again; the exit code is 1 then. At the end the properties of all other folders get ten times
the inputs of `make test`, and both engines read a night of changed lines.

    python -m tests.fuzz.run --seconds 600
    python -m tests.fuzz.run --seconds 60 --only settings --seed 7
"""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, is_hypothesis_test, seed, settings

#: Inputs of a property between two looks at the clock.
_INPUTS_A_BATCH = 200


@dataclass
class Property:
    """A property, and how many inputs it has seen."""

    name: str
    run: Callable[[], None]
    inputs: int = 0
    seconds: float = 0.0


def properties(chosen: str = "") -> list[Property]:
    """The properties of all test modules of this folder whose name has ``chosen`` in it."""
    found = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        module = import_module(f"tests.fuzz.{path.stem}")
        for name, function in vars(module).items():
            full_name = f"{path.stem}::{name}"
            if is_hypothesis_test(function) and chosen in full_name:
                found.append(_counted(full_name, function))
    return found


def _counted(name: str, function: Any) -> Property:
    each = Property(name, function)
    inner = function.hypothesis.inner_test

    def count(*args: Any, **kwargs: Any) -> None:
        each.inputs += 1
        inner(*args, **kwargs)

    function.hypothesis.inner_test = count
    return each


def fuzz(each: Property, seconds: float, first_seed: int) -> int | None:
    """Runs a property for so long; gives the seed with which it failed, if it did."""
    end = time.monotonic() + seconds
    number = first_seed
    while time.monotonic() < end:
        begun = time.monotonic()
        try:
            seed(number)(each.run)()
        except Exception:
            traceback.print_exc()
            return number
        finally:
            each.seconds += time.monotonic() - begun
        number += 1
    return None


def run_both_engines(number: int) -> bool:
    """Whether both engines give the same of a night that is changed by this seed."""
    command = [sys.executable, "-m", "pytest", str(Path(__file__).parent / "test_determinism.py")]
    environment = {**os.environ, "FUZZ_SEED": str(number)}
    return subprocess.run(command, env=environment, check=False).returncode == 0


def other_properties(number: int) -> list[str]:
    """The command that gives the properties of the other folders many inputs of this seed."""
    command = [sys.executable, "-m", "pytest", "-m", "hypothesis and not spark and not house"]
    command += ["--hypothesis-profile=many", f"--hypothesis-seed={number}"]
    folder = Path(__file__).parent
    return [*command, str(folder.parent), f"--ignore={folder}"]


def main() -> int:
    """Runs the properties; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600, help="for all properties together")
    parser.add_argument("--seed", type=int, help="of the first inputs; else another in each run")
    parser.add_argument(
        "--only", default="", metavar="NAME", help="properties with this in the name"
    )
    args = parser.parse_args()
    settings.register_profile(
        "fuzz",
        deadline=None,
        database=None,
        max_examples=_INPUTS_A_BATCH,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    settings.load_profile("fuzz")
    chosen = properties(args.only)
    if not chosen:
        sys.stderr.write(f"no property has {args.only!r} in its name\n")
        return 1
    first_seed = secrets.randbits(31) if args.seed is None else args.seed
    failed = []
    for each in chosen:
        failing = fuzz(each, args.seconds / len(chosen), first_seed)
        sys.stdout.write(f"{each.inputs:>9,} inputs in {each.seconds:5.0f} s  {each.name}\n")
        sys.stdout.flush()
        if failing is not None:
            failed.append(
                f"python -m tests.fuzz.run --only {each.name} --seed {failing} --seconds 1\n"
            )
    sys.stdout.write(f"{sum(each.inputs for each in chosen):>9,} inputs, seed {first_seed}\n")
    others = other_properties(first_seed)
    if not args.only and subprocess.run(others, check=False).returncode:
        failed.append(f"{shlex.join(others)}\n")
    if not args.only and not run_both_engines(first_seed):
        failed.append(f"FUZZ_SEED={first_seed} python -m pytest tests/fuzz/test_determinism.py\n")
    for command in failed:
        sys.stdout.write(f"failed; to run it again: {command}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
