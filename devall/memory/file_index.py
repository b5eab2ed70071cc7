"""An index of files: their passages and vectors in an SQLite file, brought up to date in part."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from devall.core.errors import SetupError
from devall.memory.passages import SPLITTING, Passage
from devall.memory.vectors import VectorTable
from devall.workspace import private_folder

_FORMAT = 2
_APPLICATION = 0x6D656D31
_LOCK_WAIT = 30
"""Seconds until an index that another process writes to is given up."""
_FORGOTTEN = 3600
"""Seconds after which a file whose indexing has not ended is taken for given up."""
_OLD = b'{"version": 1, "model":'
"""How indexes of an earlier form begin."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    stamp TEXT NOT NULL,
    digest TEXT NOT NULL,
    begun REAL NOT NULL,
    whole INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS by_path ON files (path);
CREATE TABLE IF NOT EXISTS passages (
    id INTEGER PRIMARY KEY,
    file INTEGER NOT NULL,
    line INTEGER NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS by_file ON passages (file);
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A passage of a file, with its vector."""

    file: int
    passage: Passage
    vector: bytes


@dataclass(frozen=True, slots=True)
class Known:
    """A file as it was indexed."""

    stamp: str
    """Size and time of change."""
    digest: str
    """Of its content, and of how it was cut."""


class FileIndex:
    """Files, their passages and the passages' vectors; several processes may share one.

    A file is seen once all of it is there: its rows are written in portions, and those of its
    earlier state go in the transaction that makes it whole. Methods block: call them in a
    thread.
    """

    def __init__(self, path: Path | None, model: str) -> None:
        """Take the place; nothing is opened yet.

        Args:
            path: The file; None = a temporary one.
            model: Name of the embedding model: vectors of another one are thrown away.
        """
        self._path = path
        self._model = f"{model}/{SPLITTING}"
        self._connection: sqlite3.Connection | None = None
        self._own = 0
        """Grows with each change made here."""
        self._lock = threading.RLock()

    def open(self) -> None:
        """Open or make the file; a second time does nothing.

        Raises:
            SetupError: it cannot be made, or is something else.
        """
        with self._lock:
            if self._connection is not None:
                return
            try:
                self._connect()
            except SetupError as error:
                self.close()
                if self._path is None or not _is_own_damage(self._path, error.__cause__):
                    raise
                # What was in it can be made again from the files.
                self._path.unlink(missing_ok=True)
                self._connect()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @property
    def version(self) -> tuple[int, int]:
        """Another value after each change, whoever made it."""
        with self._used() as db:
            return db.execute("PRAGMA data_version").fetchone()[0], self._own

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; 0: nobody knows yet."""
        with self._used() as db:
            return int(self._fact(db, "dimensions") or 0)

    @contextmanager
    def unchanging(self) -> Generator[None]:
        """A block in which nobody changes what is read."""
        with self._used() as db:
            db.execute("BEGIN")
            try:
                yield
            finally:
                db.execute("COMMIT")

    def files(self) -> dict[str, Known]:
        """The files that are whole; none where the index belongs to another model meanwhile."""
        with self._used() as db:
            self._claim(db)
            rows = db.execute("SELECT path, stamp, digest FROM files WHERE whole")
            return {path: Known(stamp, digest) for path, stamp, digest in rows}

    def begin(self, path: str, stamp: str, digest: str) -> int:
        """A number for a file whose passages will be added."""
        with self._changed() as db:
            made = db.execute(
                "INSERT INTO files (path, stamp, digest, begun) VALUES (?, ?, ?, ?)",
                (path, stamp, digest, time.time()),
            )
            assert made.lastrowid is not None
            return made.lastrowid

    def vectors(self, path: str) -> dict[str, bytes]:
        """What is known of a file's passages: the vector of each whole text."""
        with self._used() as db:
            rows = db.execute(
                "SELECT title, text, vector FROM passages"
                " WHERE file IN (SELECT id FROM files WHERE path = ? AND whole)",
                (path,),
            )
            return {Passage(text, title).whole: vector for title, text, vector in rows}

    def add(self, entries: Sequence[Entry], whole: Iterable[int] = ()) -> None:
        """Add passages; the files with these numbers have all of theirs now."""
        with self._changed() as db:
            db.executemany(
                "INSERT INTO passages (file, line, title, text, vector) VALUES (?, ?, ?, ?, ?)",
                (
                    (
                        each.file,
                        each.passage.line,
                        each.passage.title,
                        each.passage.text,
                        each.vector,
                    )
                    for each in entries
                ),
            )
            if entries and not int(self._fact(db, "dimensions") or 0):
                self._set(db, "dimensions", str(len(entries[0].vector) // 4))
            for number in whole:
                earlier = (
                    "SELECT id FROM files WHERE whole AND path ="
                    " (SELECT path FROM files WHERE id = ?)"
                )
                db.execute(f"DELETE FROM passages WHERE file IN ({earlier})", (number,))  # noqa: S608
                db.execute(f"DELETE FROM files WHERE id IN ({earlier})", (number,))  # noqa: S608
                db.execute("UPDATE files SET whole = 1 WHERE id = ?", (number,))

    def restamp(self, stamps: Mapping[str, str]) -> None:
        """Note the stamps of files whose content is as it was."""
        with self._changed() as db:
            rows = [(stamp, path) for path, stamp in stamps.items()]
            db.executemany("UPDATE files SET stamp = ? WHERE path = ? AND whole", rows)

    def drop(self, paths: Iterable[str]) -> None:
        """Forget files."""
        with self._changed() as db:
            for path in paths:
                own = "SELECT id FROM files WHERE whole AND path = ?"
                db.execute(f"DELETE FROM passages WHERE file IN ({own})", (path,))  # noqa: S608
                db.execute("DELETE FROM files WHERE whole AND path = ?", (path,))

    def clear(self) -> None:
        """Forget everything, the number of dimensions included."""
        with self._changed() as db:
            self._empty(db)

    def rows(self, dimensions: int) -> tuple[VectorTable, Sequence[int]]:
        """All vectors of that size, the last one first, and the numbers of their passages."""
        numbers = array("q")

        def vectors(db: sqlite3.Connection) -> Iterator[bytes]:
            found = db.execute(
                "SELECT passages.id, vector FROM passages JOIN files ON files.id = file"
                " WHERE whole ORDER BY passages.id DESC"
            )
            for number, vector in found:
                if len(vector) == 4 * dimensions:
                    numbers.append(number)
                    yield vector

        with self._used() as db:
            count = db.execute("SELECT count(*) FROM passages").fetchone()[0]
            return VectorTable(vectors(db), count, dimensions), numbers

    def passage(self, number: int) -> tuple[str, Passage]:
        """The file and the passage with that number, as `rows` gave it."""
        with self._used() as db:
            path, *passage = db.execute(
                "SELECT path, text, title, line FROM passages JOIN files ON files.id = file"
                " WHERE passages.id = ?",
                (number,),
            ).fetchone()
        return path, Passage(*passage)

    def _connect(self) -> None:
        if self._path is not None:
            self._prepare(self._path)
        try:
            db = sqlite3.connect(
                "" if self._path is None else self._path,
                timeout=_LOCK_WAIT,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise self._failed(error) from error
        self._connection = db
        with self._changed():
            is_new = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
            if not is_new and db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
                raise self._refused()
            if db.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
                for table in ("facts", "files", "passages"):
                    db.execute(f"DROP TABLE IF EXISTS {table}")
                db.execute(f"PRAGMA application_id = {_APPLICATION}")
                db.execute(f"PRAGMA user_version = {_FORMAT}")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                db.execute(statement)
            forgotten = "SELECT id FROM files WHERE NOT whole AND begun < ?"
            end = (time.time() - _FORGOTTEN,)
            db.execute(f"DELETE FROM passages WHERE file IN ({forgotten})", end)  # noqa: S608
            db.execute(f"DELETE FROM files WHERE id IN ({forgotten})", end)  # noqa: S608
            self._claim(db)

    def _prepare(self, path: Path) -> None:
        """Make the file where there is none, for the user alone.

        One that is there is left to SQLite: whoever else opens and closes it takes the locks
        from all that this process has on it.
        """
        try:
            private_folder(path.parent)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise SetupError(f"the index {path} cannot be opened: {error}") from error

    def _claim(self, db: sqlite3.Connection) -> None:
        """Empty the index where its vectors are those of another model."""
        if self._fact(db, "model") != self._model:
            with self._changed():
                self._empty(db)
                self._set(db, "model", self._model)

    def _empty(self, db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM passages")
        db.execute("DELETE FROM files")
        self._set(db, "dimensions", "0")

    def _fact(self, db: sqlite3.Connection, name: str) -> str:
        row = db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return row[0] if row else ""

    def _set(self, db: sqlite3.Connection, name: str, value: str) -> None:
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    @contextmanager
    def _used(self) -> Generator[sqlite3.Connection]:
        """The open file, for one thread at a time.

        Raises:
            SetupError: it cannot be read or written.
        """
        with self._lock:
            assert self._connection is not None
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise self._failed(error) from error

    @contextmanager
    def _changed(self) -> Generator[sqlite3.Connection]:
        """The open file in a transaction; within another one, a part of it."""
        with self._lock:
            db = self._connection
            assert db is not None
            self._own += 1
            if db.in_transaction:
                yield db
                return
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            except BaseException as error:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise self._failed(error) from error
                raise

    def _failed(self, error: sqlite3.Error) -> SetupError:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            return self._refused()
        place = "the temporary index" if self._path is None else f"the index {self._path}"
        return SetupError(
            f"{place} of a memory cannot be used: {error}",
            hint="delete it: it is made again from the files" if self._path else "",
        )

    def _refused(self) -> SetupError:
        return SetupError(
            f"{self._path} is no index of files",
            hint="move it away, or name another file as `index_path`",
        )


def _is_own_damage(path: Path, error: BaseException | None) -> bool:
    """Whether a file that cannot be opened was an index: damaged, or of an earlier form."""
    code = getattr(error, "sqlite_errorcode", None)
    if code not in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
        return False
    with path.open("rb") as file:
        head = file.read(100)
    if code == sqlite3.SQLITE_NOTADB:
        return head.startswith(_OLD)
    return int.from_bytes(head[68:72]) == _APPLICATION
