-- Times are milliseconds since 1970-01-01 UTC, lengths are tokens, sizes are bytes. What is asked for has its own column, the rest is JSON.

CREATE TABLE sessions (
    id              INTEGER PRIMARY KEY,
    profile         TEXT NOT NULL,
    url             TEXT NOT NULL,
    user            TEXT NOT NULL,
    host            TEXT NOT NULL,
    tool_version    TEXT NOT NULL,
    started_unix_ms INTEGER NOT NULL,
    simulated       INTEGER NOT NULL,
    next_task       INTEGER NOT NULL DEFAULT 1,
    facts           TEXT,
    cards           TEXT
);
CREATE INDEX sessions_by_profile ON sessions (profile, id);

CREATE TABLE tasks (
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    task_id    INTEGER NOT NULL,
    title      TEXT NOT NULL,
    kind       TEXT NOT NULL,
    state      TEXT NOT NULL,
    note       TEXT,
    PRIMARY KEY (session_id, position),
    UNIQUE (session_id, task_id)
) WITHOUT ROWID;

CREATE TABLE configurations (
    id            INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    context       INTEGER NOT NULL,
    evidence      TEXT NOT NULL,
    UNIQUE (session_id, context)
);

CREATE TABLE runs (
    id              INTEGER PRIMARY KEY,
    session_id      INTEGER REFERENCES sessions (id) ON DELETE CASCADE,
    plan_name       TEXT NOT NULL,
    plan_kind       TEXT NOT NULL,
    plan            TEXT NOT NULL,
    url             TEXT NOT NULL,
    engine          TEXT NOT NULL,
    engine_version  TEXT,
    model           TEXT NOT NULL,
    context         INTEGER,
    seed            INTEGER NOT NULL,
    simulated       INTEGER NOT NULL,
    started_unix_ms INTEGER NOT NULL,
    ended_unix_ms   INTEGER,
    ending          TEXT
);
CREATE INDEX runs_by_session ON runs (session_id, id);

CREATE TABLE points (
    id            INTEGER PRIMARY KEY,
    run_id        INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    input         INTEGER NOT NULL,
    output        INTEGER NOT NULL,
    concurrency   INTEGER NOT NULL,
    context       INTEGER,
    ended_unix_ms INTEGER NOT NULL,
    validity      TEXT NOT NULL,
    output_tok_s  REAL,
    decode_tok_s  REAL,
    ttft_p50_ms   REAL,
    point         TEXT NOT NULL
);
CREATE INDEX points_by_run ON points (run_id, id);

CREATE TABLE requests (
    point_id        INTEGER NOT NULL REFERENCES points (id) ON DELETE CASCADE,
    position        INTEGER NOT NULL,
    start_ms        REAL NOT NULL,
    ttft_ms         REAL,
    first_answer_ms REAL,
    e2e_ms          REAL,
    tpot_ms         REAL,
    input_tokens    INTEGER,
    output_tokens   INTEGER,
    cached_tokens   INTEGER,
    chunks          INTEGER NOT NULL,
    failure         TEXT,
    PRIMARY KEY (point_id, position)
) WITHOUT ROWID;

-- span_ms is 0 for a single reading, else the time that a row stands for.
CREATE TABLE memory_history (
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    span_ms    INTEGER NOT NULL,
    card       INTEGER NOT NULL,
    at_unix_ms INTEGER NOT NULL,
    samples    INTEGER NOT NULL,
    used_min   INTEGER NOT NULL,
    used_mean  INTEGER NOT NULL,
    used_max   INTEGER NOT NULL,
    total      INTEGER NOT NULL,
    PRIMARY KEY (session_id, span_ms, card, at_unix_ms)
) WITHOUT ROWID;

CREATE TABLE events (
    id         INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    at_unix_ms INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    text       TEXT NOT NULL,
    context    INTEGER
);
CREATE INDEX events_by_session ON events (session_id, at_unix_ms);

-- A decision outlives its session.
CREATE TABLE decisions (
    id             INTEGER PRIMARY KEY,
    session_id     INTEGER REFERENCES sessions (id) ON DELETE SET NULL,
    at_unix_ms     INTEGER NOT NULL,
    user           TEXT NOT NULL,
    host           TEXT NOT NULL,
    profile        TEXT NOT NULL,
    value          INTEGER NOT NULL,
    previous       INTEGER,
    engine         TEXT,
    engine_version TEXT,
    model          TEXT,
    simulated      INTEGER NOT NULL,
    evidence       TEXT NOT NULL
);
CREATE INDEX decisions_by_profile ON decisions (profile, at_unix_ms);
