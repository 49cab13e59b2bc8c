"""Clients that were asked for their running info and have not answered: who may be asked when.

A client asks its brokers for the offset of each queue of which it has none before it answers
(request 307), and waits up to 5 s for each (``fetchConsumeOffsetFromBroker``). The broker gives up
after 10 s (``Broker2Client.callClient``), the collector sooner: the question stays in the queue of
the client's executor (``NettyRemotingClient``), which has no bound, and more of them pile up. So a
question that had no answer counts as under way for five minutes, which is enough for 60 such
queues; then for ten, and so on.

It is written down before it is sent, in files that several collectors of a machine share, so that
it holds also where one is killed, or another one asks. A file has a digest of each id.
"""

import hashlib
import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..declared.instants import SECOND, Instant
from ..errors import AuditError
from ..storage import disk

#: The first time for which a question without an answer counts as under way; each further one
#: doubles it, up to the longest.
FIRST_WAIT: Instant = 300 * SECOND
LONGEST_WAIT: Instant = 3600 * SECOND
#: The seconds that another collector may keep the file: it does so for less than a millisecond.
_LOCKED_SECONDS = 5.0

_TABLE = """CREATE TABLE IF NOT EXISTS asked
    (client TEXT PRIMARY KEY, at INTEGER NOT NULL, times INTEGER NOT NULL) WITHOUT ROWID"""
#: The times at which the client may not be asked; a clock that was set back far forbids nothing.
_IS_WAITING = f""":now > at - {LONGEST_WAIT} AND
    :now < at + min({FIRST_WAIT} << min(times - 1, 9), {LONGEST_WAIT})"""
_ASK = f"""INSERT INTO asked VALUES (:client, :now, 1) ON CONFLICT (client)
    DO UPDATE SET at = :now, times = times + 1 WHERE NOT ({_IS_WAITING})"""  # noqa: S608
_TIMES = "SELECT times FROM asked WHERE client = :client"
_WAITS = f"SELECT 1 FROM asked WHERE client = :client AND {_IS_WAITING}"  # noqa: S608
_ANSWERED = "DELETE FROM asked WHERE client = :client"
_ENDED = f"""UPDATE asked SET at = at - {LONGEST_WAIT}, times = times - 1
    WHERE client = :client"""  # noqa: S608
_FORGET = f"DELETE FROM asked WHERE times = 0 OR abs(:now - at) > {2 * LONGEST_WAIT}"  # noqa: S608


class AskedClients:
    """The clients that were asked and have not answered, by id.

    A file that is gone or damaged is made anew. One that cannot be written is left out until the
    next ``forget``; of the first one that is an AuditError, and at the beginning an OSError.

    >>> asked = AskedClients([":memory:"], 0)
    >>> asked.ask("c", 1), asked.ask("c", 2), asked.ask("c", 1 + FIRST_WAIT)
    (True, False, True)
    >>> asked.ask("c", 2 + 2 * FIRST_WAIT), asked.ask("c", 1 + 3 * FIRST_WAIT), asked.times("c")
    (False, True, 3)
    >>> asked.answered("c"), asked.times("c"), asked.ask("c", 0)
    (None, 0, True)
    """

    def __init__(self, paths: Sequence[Path | str], now: Instant) -> None:
        self._first, *_ = self._paths = paths
        self._files = {self._first: _opened(self._first)}
        self.forget(now)

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            file.close()

    def forget(self, now: Instant) -> None:
        """Drops what is over, so that ids without end do not fill the files; tries all of them."""
        for path in self._paths:
            if path not in self._files:
                with suppress(OSError):
                    self._files[path] = _opened(path)
        self._execute(_FORGET, now=now)

    def waits(self, client_id: str, now: Instant) -> bool:
        """True if a question to the client may still be under way, whoever asked it."""
        return any(self._execute(_WAITS, client_id, now))

    def ask(self, client_id: str, now: Instant) -> bool:
        """Writes down that the client is asked now; whether it may be."""
        return not self.waits(client_id, now) and all(self._execute(_ASK, client_id, now))

    def times(self, client_id: str) -> int:
        """The number of questions in a row that the client has not answered."""
        return max(self._execute(_TIMES, client_id))

    def answered(self, client_id: str) -> None:
        """Forgets all questions without an answer."""
        self._execute(_ANSWERED, client_id)

    def ended(self, client_id: str) -> None:
        """Takes the last question back: it is not under way any more, whoever answered it."""
        self._execute(_ENDED, client_id)

    def _execute(self, sql: str, client_id: str = "", now: Instant = 0) -> list[int]:
        """Executes it in each file; the value that each selects, or the number of changed rows."""
        client = hashlib.md5(client_id.encode(errors="replace"), usedforsecurity=False).hexdigest()
        values: dict[str, str | int] = {"client": client, "now": now}
        found: list[int] = []
        for path, file in [*self._files.items()]:
            try:
                found.append(_executed(file, sql, values))
            except sqlite3.Error:
                file.close()
                try:
                    # Somebody removed or damaged it, or the disk was full: a collector runs on.
                    self._files[path] = _opened(path)
                    found.append(_executed(self._files[path], sql, values))
                except (OSError, sqlite3.Error) as error:
                    if path == self._first:
                        what = "who was asked for a running info cannot be written down"
                        raise AuditError(
                            f"{what}: {error}; nobody is asked without that"
                        ) from error
                    self._files.pop(path).close()
        return found


def _executed(file: sqlite3.Connection, sql: str, values: dict[str, str | int]) -> int:
    """The value that is selected, or the number of changed rows."""
    cursor = file.execute(sql, values)
    is_select = cursor.description is not None
    return int((cursor.fetchone() or (0,))[0]) if is_select else cursor.rowcount


def _opened(path: Path | str) -> sqlite3.Connection:
    """The file, which is made anew where it is none; OSError where it cannot be."""
    for _ in range(2):
        if isinstance(path, Path):
            disk.make_private(path.parent)
            # Its owner alone may read it.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        file = sqlite3.connect(path, _LOCKED_SECONDS, isolation_level=None)
        try:
            # A process that is killed loses nothing, and after a power failure no client waits.
            file.execute("PRAGMA synchronous = OFF")
            file.execute("PRAGMA journal_mode = TRUNCATE")
            file.execute(_TABLE)
            file.execute(_WAITS, {"client": "", "now": 0})
        except sqlite3.OperationalError as error:
            file.close()
            raise OSError(f"{path}: {error}") from error
        except sqlite3.DatabaseError:
            file.close()
            Path(path).unlink()
        else:
            return file
    raise OSError(f"{path}: it is made anew, and is no file of SQLite again")
