"""The tables of the journal's file, version by version."""

from __future__ import annotations

import sqlite3

from devall.core.errors import SetupError

BUSY_SECONDS = 10.0
"""How long another process's commit is waited for."""

MIGRATIONS = (
    """
    CREATE TABLE runs(
        run INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        epoch INTEGER NOT NULL,
        status TEXT NOT NULL,
        workflow TEXT NOT NULL,
        task TEXT NOT NULL,
        began REAL NOT NULL,
        ended REAL,
        owner TEXT NOT NULL,
        lease REAL NOT NULL,
        settings TEXT NOT NULL,
        sources TEXT NOT NULL,
        result TEXT
    ) STRICT;
    CREATE TABLE epochs(
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        epoch INTEGER NOT NULL,
        at REAL NOT NULL,
        nodes TEXT NOT NULL,
        cuts TEXT NOT NULL,
        PRIMARY KEY(run, epoch)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE steps(
        seq INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        epoch INTEGER NOT NULL,
        key TEXT NOT NULL,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        request TEXT NOT NULL,
        value TEXT NOT NULL,
        at REAL NOT NULL
    ) STRICT;
    CREATE INDEX steps_of_run ON steps(run, seq);
    CREATE TABLE pieces(
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        hash TEXT NOT NULL,
        body TEXT,
        PRIMARY KEY(run, hash)
    ) STRICT, WITHOUT ROWID;
    """,
    """
    ALTER TABLE steps ADD COLUMN seconds REAL NOT NULL DEFAULT 0;
    CREATE INDEX runs_by_time ON runs(began);
    """,
)
"""What makes a file of version n + 1 of one of version n; version 0 is an empty file.

- `runs`: `owner` and `lease` tell who writes it, and until when that is certain; `settings`
  what it was started with; `sources` the texts of its workflow files; `result` its last end.
- `epochs`: a process's turn at a run: a digest for each node of what it was then, and the
  nodes whose earlier steps no longer count.
- `steps`: as `StepRecord` has them; several with one key: the last one counts.
- `pieces`: large pieces of requests and values; a body of NULL stands in a file of its own.
"""

VERSION = len(MIGRATIONS)


def migrate(database: sqlite3.Connection, file: str) -> None:
    """Bring the file to the version of today.

    Raises:
        SetupError: a newer devall wrote it.
        sqlite3.Error: it cannot be read or written, or is no database.
    """
    if check(database, file) == VERSION:
        return
    database.execute("BEGIN IMMEDIATE")  # another process may be at it
    try:
        version = check(database, file)
        for number in range(version, VERSION):
            for statement in MIGRATIONS[number].split(";"):
                database.execute(statement)
        database.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def check(database: sqlite3.Connection, file: str) -> int:
    """The version of the file, which nothing is written to.

    Raises:
        SetupError: a newer devall wrote it.
        sqlite3.Error: it cannot be read, or is no database.
    """
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise SetupError(
            f"the journal {file} has schema version {version}; this devall knows {VERSION}",
            hint="use the newer devall that wrote it, or another folder: --logs-dir DIR",
        )
    return version
