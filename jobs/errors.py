"""The errors of the jobs, by whose fault it is; the exit code follows from the class.

AuditError                 4  anything else
|-- JavaError              4  the machine has no Java
|-- SparkError             4  Spark, Java or a worker failed
|-- DamagedError           4  published tables are not what was published
|-- LeaseError             4  another run is writing, or took over
|-- SettingsError          2  the settings or the command line
`-- InputError             3  the input
    |-- NothingToAuditError   no list of members lies in the window
    |-- ContractError         a snapshot table has not the columns that it must have
    `-- QuarantineError       more lines were not understood than is allowed
"""


class TerminatedError(BaseException):
    """SIGTERM came: like Ctrl-C it ends whatever runs, by way of every ``finally``."""


def stop_before(error: BaseException) -> BaseException | None:
    """The Ctrl-C or SIGTERM in whose midst an error was raised: Java may be stopped too.

    >>> stopped = OSError("the connection is gone")
    >>> stopped.__context__ = KeyboardInterrupt()
    >>> stop_before(stopped), stop_before(OSError("disk full"))
    (KeyboardInterrupt(), None)
    """
    before = error.__context__
    while before is not None and not isinstance(before, KeyboardInterrupt | TerminatedError):
        before = before.__context__
    return before


class AuditError(Exception):
    """Any failure of a job that is explained in words rather than by a traceback."""

    exit_code = 4

    def __init__(self, text: str = "", console: str = "") -> None:
        """``console``: what the command line adds; a shell has no such options."""
        super().__init__(text)
        self.console = console


class JavaError(AuditError):
    """There is no Java to start Spark with; the message has the places where it was looked for."""


class SparkError(AuditError):
    """Spark could not start, or failed; the message names the cause and where the stack is."""


class DamagedError(AuditError):
    """A file that was published is gone, or is another; the message names it."""


class LeaseError(AuditError):
    """Another writer holds the lease, or has taken it over; nothing was published."""


class SettingsError(AuditError):
    """The settings or the arguments are wrong; the message lists every error."""

    exit_code = 2


class InputError(AuditError):
    """The input is missing or cannot be read."""

    exit_code = 3


class NothingToAuditError(InputError):
    """No list of members lies in the window; nothing was published."""


class ContractError(InputError):
    """A snapshot table lacks columns or has them of other types; the message lists every one."""


class QuarantineError(InputError):
    """A larger share of the input lines was quarantined than the settings allow."""
