"""The console script, and ``python -m rebalance_audit``.

Ctrl-C is one line, from the first moment on.
"""

import sys


def main() -> None:
    """Runs one command; SystemExit with its exit code, unless that is 0.

    Who calls this as a function, as a wheel task of Databricks does, passes over a number. What it
    imports takes a good part of a second.
    """
    try:
        from .cli import main as run  # noqa: PLC0415 - whatever it takes is within the try
    except KeyboardInterrupt:
        sys.exit(130)
    if code := run():
        sys.exit(code)


if __name__ == "__main__":
    main()
