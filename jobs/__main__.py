"""The console script, and ``python -m rebalance_audit``.

Ctrl-C is one line, from the first moment on.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Runs one command; returns the exit code. What it imports takes a good part of a second."""
    try:
        from .cli import main as run  # noqa: PLC0415 - whatever it takes is within the try
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
