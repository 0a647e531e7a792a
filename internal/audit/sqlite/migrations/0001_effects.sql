-- Each effect whole, with what its envelope said. Levels that are absent are
-- the empty string; instants are microseconds since 1970 in UTC.
CREATE TABLE effects (
    project     TEXT    NOT NULL,
    scope       TEXT    NOT NULL,
    revision    INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    id          TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    correlation TEXT    NOT NULL,
    causation   TEXT    NOT NULL,
    effect      BLOB    NOT NULL,
    PRIMARY KEY (project, scope, revision)
) WITHOUT ROWID;

CREATE INDEX effects_by_sequence ON effects (sequence);

-- What records are found by; the record itself follows from its effect.
CREATE TABLE records (
    project       TEXT    NOT NULL,
    scope         TEXT    NOT NULL,
    revision      INTEGER NOT NULL,
    idx           INTEGER NOT NULL,
    user_id       TEXT    NOT NULL,
    agent_id      TEXT    NOT NULL,
    session_id    TEXT    NOT NULL,
    sequence      INTEGER NOT NULL,
    applied_at    INTEGER NOT NULL,
    kind          TEXT    NOT NULL,
    rule          TEXT    NOT NULL,
    correlation   TEXT    NOT NULL,
    fact_id       TEXT    NOT NULL,
    PRIMARY KEY (project, scope, revision, idx)
) WITHOUT ROWID;

CREATE INDEX records_by_fact ON records (project, fact_id, applied_at, scope, revision, idx);
CREATE INDEX records_by_sequence ON records (project, sequence, idx);
CREATE INDEX records_by_correlation ON records (project, correlation, sequence, idx);
