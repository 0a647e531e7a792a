-- The outcomes of an effect together, as JSON, deflated. They are found by a hash
-- of project and correlation id. Those of earlier programs stay in outcomes until
-- they expire.
CREATE TABLE outcome_sets (
  row      INTEGER PRIMARY KEY,
  scope_id INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  expires  INTEGER NOT NULL,
  body     BLOB NOT NULL
);
CREATE INDEX outcome_sets_by_expiry ON outcome_sets (expires);
CREATE TABLE outcome_keys (
  hash    INTEGER NOT NULL,
  set_row INTEGER NOT NULL,
  PRIMARY KEY (hash, set_row)
) WITHOUT ROWID;
CREATE INDEX outcome_keys_by_set ON outcome_keys (set_row);
