-- What reports count of a record; it is NULL until its effect has a tally.
ALTER TABLE records ADD COLUMN value TEXT;      -- hash of the fact's text
ALTER TABLE records ADD COLUMN known_ms INTEGER; -- from said to known; NULL where unknown
ALTER TABLE records ADD COLUMN model TEXT;

-- What reports count of an effect, apart from the effect, which is large.
CREATE TABLE tallies (
    project      TEXT    NOT NULL,
    scope        TEXT    NOT NULL,
    revision     INTEGER NOT NULL,
    user_id      TEXT    NOT NULL,
    agent_id     TEXT    NOT NULL,
    session_id   TEXT    NOT NULL,
    applied_at   INTEGER NOT NULL,
    rule         TEXT    NOT NULL,
    extractor    TEXT    NOT NULL,
    episodes     INTEGER NOT NULL,
    candidates   INTEGER NOT NULL,
    adds         INTEGER NOT NULL,
    PRIMARY KEY (project, scope, revision)
) WITHOUT ROWID;

CREATE INDEX records_by_time ON records (project, applied_at);
