-- The memory history by time: the cards of one moment lie together, so a batch of readings goes to the end of the table instead of to a
-- page for each card, and the newest moment is found without a search.
ALTER TABLE memory_history RENAME TO memory_history_by_card;

CREATE TABLE memory_history (
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    span_ms    INTEGER NOT NULL,
    at_unix_ms INTEGER NOT NULL,
    card       INTEGER NOT NULL,
    samples    INTEGER NOT NULL,
    used_min   INTEGER NOT NULL,
    used_mean  INTEGER NOT NULL,
    used_max   INTEGER NOT NULL,
    total      INTEGER NOT NULL,
    PRIMARY KEY (session_id, span_ms, at_unix_ms, card)
) WITHOUT ROWID;

INSERT INTO memory_history
    (session_id, span_ms, at_unix_ms, card, samples, used_min, used_mean, used_max, total)
SELECT session_id, span_ms, at_unix_ms, card, samples, used_min, used_mean, used_max, total
FROM memory_history_by_card;

DROP TABLE memory_history_by_card;
