-- What a record stood with besides its scope, and each index of it: the scope's
-- key and levels. They are now once in places, and records is a view.
CREATE TABLE places (
    id         INTEGER PRIMARY KEY,
    project    TEXT NOT NULL,
    scope      TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    UNIQUE (project, scope)
);
INSERT INTO places (project, scope, user_id, agent_id, session_id)
    SELECT project, scope, min(user_id), min(agent_id), min(session_id) FROM records GROUP BY project, scope;

CREATE TABLE record_rows (
    place       INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    idx         INTEGER NOT NULL,
    project     TEXT    NOT NULL,
    sequence    INTEGER NOT NULL,
    applied_at  INTEGER NOT NULL,
    kind        TEXT    NOT NULL,
    rule        TEXT    NOT NULL,
    correlation TEXT    NOT NULL,
    fact_id     TEXT    NOT NULL,
    value       TEXT,
    known_ms    INTEGER,
    model       TEXT,
    PRIMARY KEY (place, revision, idx)
) WITHOUT ROWID;
INSERT INTO record_rows
    SELECT p.id, r.revision, r.idx, r.project, r.sequence, r.applied_at, r.kind, r.rule, r.correlation, r.fact_id,
        r.value, r.known_ms, r.model
    FROM places p CROSS JOIN records r ON r.project = p.project AND r.scope = p.scope ORDER BY p.id, r.revision, r.idx;
DROP TABLE records;

CREATE INDEX record_rows_by_fact ON record_rows (project, fact_id, applied_at) WHERE fact_id <> '';
CREATE INDEX record_rows_by_sequence ON record_rows (project, sequence, idx);
CREATE INDEX record_rows_by_correlation ON record_rows (project, correlation, sequence, idx);
CREATE INDEX record_rows_by_time ON record_rows (project, applied_at);

-- CROSS JOIN keeps SQLite from beginning with all scopes of a project.
CREATE VIEW records AS
    SELECT r.project, p.scope, r.revision, r.idx, p.user_id, p.agent_id, p.session_id, r.sequence, r.applied_at,
        r.kind, r.rule, r.correlation, r.fact_id, r.value, r.known_ms, r.model
    FROM record_rows r CROSS JOIN places p ON p.id = r.place;
