-- A run from the command line may have a name, and keeps its order so that it can be gone on with.
ALTER TABLE runs ADD COLUMN name TEXT;
ALTER TABLE runs ADD COLUMN benchmark TEXT;

ALTER TABLE requests ADD COLUMN client_queue_ms REAL;

-- Requests of a cell whose point is not measured yet; they go over to `requests` with it.
CREATE TABLE early_requests (
    run_id          INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    cell            INTEGER NOT NULL,
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
    client_queue_ms REAL,
    PRIMARY KEY (run_id, cell, position)
) WITHOUT ROWID;
