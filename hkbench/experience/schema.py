"""The tables of the database, by version: `PRAGMA user_version` says how many of the migrations a file has."""

from __future__ import annotations

#: Each brings a file to the next version. What is released is never changed: a change is one more entry.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE run (
        id TEXT PRIMARY KEY, digest TEXT NOT NULL, name TEXT NOT NULL, started TEXT NOT NULL, hkbench TEXT NOT NULL,
        strategy TEXT NOT NULL, model TEXT NOT NULL, judge_model TEXT, backend TEXT NOT NULL, device TEXT NOT NULL,
        device_name TEXT NOT NULL, arch TEXT, track TEXT NOT NULL, rules TEXT NOT NULL, sizes TEXT NOT NULL,
        warm INTEGER NOT NULL, calls INTEGER NOT NULL, tokens INTEGER NOT NULL, cost REAL, currency TEXT
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE problem (
        run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, name TEXT NOT NULL, sha256 TEXT NOT NULL, facts TEXT,
        classes TEXT NOT NULL, dtype TEXT, elements INTEGER, PRIMARY KEY (run, name)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX problem_facts ON problem (facts);

    CREATE TABLE sample (
        run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, problem TEXT NOT NULL, attempt INTEGER NOT NULL,
        sample INTEGER NOT NULL, model TEXT, status TEXT NOT NULL, kind TEXT, stage TEXT, fingerprint TEXT, symbol TEXT,
        speedup REAL, low REAL, high REAL, unsettled INTEGER NOT NULL, build_seconds REAL, seconds REAL NOT NULL,
        trials INTEGER NOT NULL, passed INTEGER NOT NULL, tokens INTEGER, cost REAL, sha256 TEXT,
        parent_attempt INTEGER, parent_sample INTEGER, move TEXT, bottleneck TEXT, log_gain REAL,
        gained INTEGER NOT NULL, PRIMARY KEY (run, problem, attempt, sample)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sample_move ON sample (move, bottleneck, log_gain, gained) WHERE move IS NOT NULL;

    CREATE TABLE error (
        run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, fingerprint TEXT NOT NULL, kind TEXT NOT NULL,
        stage TEXT NOT NULL, symbol TEXT, text TEXT NOT NULL, PRIMARY KEY (run, fingerprint)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX error_fingerprint ON error (fingerprint);

    CREATE TABLE mend (
        run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, problem TEXT NOT NULL, attempt INTEGER NOT NULL,
        sample INTEGER NOT NULL, fingerprint TEXT NOT NULL, by_attempt INTEGER NOT NULL, by_sample INTEGER NOT NULL,
        steps INTEGER NOT NULL, added INTEGER, removed INTEGER, PRIMARY KEY (run, problem, attempt, sample)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE remedy (
        run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, problem TEXT NOT NULL, backend TEXT NOT NULL,
        fingerprint TEXT NOT NULL, symbol TEXT, kind TEXT NOT NULL, text TEXT NOT NULL, attempt INTEGER NOT NULL,
        sample INTEGER NOT NULL, helped INTEGER NOT NULL, tried INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX remedy_run ON remedy (run);
    CREATE INDEX remedy_fingerprint ON remedy (fingerprint, backend) WHERE kind != 'rule';
    CREATE INDEX remedy_symbol ON remedy (symbol, backend) WHERE kind != 'rule' AND symbol IS NOT NULL;

    CREATE TABLE kernel (
        run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, problem TEXT NOT NULL, attempt INTEGER NOT NULL,
        sample INTEGER NOT NULL, sha256 TEXT NOT NULL, status TEXT NOT NULL, speedup REAL, low REAL, high REAL,
        unsettled INTEGER NOT NULL, code TEXT NOT NULL, PRIMARY KEY (run, problem)
    ) STRICT, WITHOUT ROWID;
    """,
)
VERSION = len(MIGRATIONS)
