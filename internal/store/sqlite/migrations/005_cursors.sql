-- How far ordered readers of streams have come.
CREATE TABLE cursors (
  reader   TEXT PRIMARY KEY,
  stream   TEXT    NOT NULL,
  sequence INTEGER NOT NULL,
  starts   INTEGER NOT NULL,
  alone    INTEGER NOT NULL,
  deaths   INTEGER NOT NULL
) WITHOUT ROWID;
