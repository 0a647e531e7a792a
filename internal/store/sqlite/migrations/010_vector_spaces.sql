-- A change of the embedder builds a second space beside the first: these tables
-- and those without the suffix take turns.
CREATE TABLE episode_vectors_2 (
  scope_id INTEGER NOT NULL,
  row      INTEGER NOT NULL,
  vector   BLOB NOT NULL,
  PRIMARY KEY (scope_id, row)
) WITHOUT ROWID;
CREATE TABLE fact_vectors_2 (
  scope_id INTEGER NOT NULL,
  row      INTEGER NOT NULL,
  vector   BLOB NOT NULL,
  PRIMARY KEY (scope_id, row)
) WITHOUT ROWID;
CREATE TABLE vector_queue_2 (
  seq     INTEGER PRIMARY KEY,
  target  INTEGER NOT NULL,
  row     INTEGER NOT NULL,
  project TEXT,
  refused TEXT,
  UNIQUE (target, row)
);
CREATE INDEX vector_queue_2_turns ON vector_queue_2 (project, seq) WHERE refused IS NULL;
CREATE INDEX vector_queue_2_refused ON vector_queue_2 (seq) WHERE refused IS NOT NULL;
