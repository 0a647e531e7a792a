-- Every table hangs off scopes, the fact scopes. Instants are integer
-- microseconds since the epoch, UTC. Identifiers are compared byte by byte
-- (BINARY, the default collation) and only ever for equality.

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE scopes (
  id            INTEGER PRIMARY KEY,
  project       TEXT NOT NULL,
  key           TEXT NOT NULL,
  user          TEXT NOT NULL,
  agent         TEXT NOT NULL,
  session       TEXT NOT NULL,
  incarnation   INTEGER NOT NULL DEFAULT 0,
  last_ordinal  INTEGER NOT NULL DEFAULT 0,
  revision      INTEGER NOT NULL DEFAULT 0,
  audit_seq     INTEGER NOT NULL DEFAULT 0,
  -- what BM25 needs to know of the scope: documents and their terms
  episode_docs  INTEGER NOT NULL DEFAULT 0,
  episode_terms INTEGER NOT NULL DEFAULT 0,
  fact_docs     INTEGER NOT NULL DEFAULT 0,
  fact_terms    INTEGER NOT NULL DEFAULT 0,
  UNIQUE (project, key)
);
CREATE INDEX scopes_by_user ON scopes (project, user, agent, session);
CREATE INDEX scopes_by_agent ON scopes (project, agent, session);
CREATE INDEX scopes_by_session ON scopes (project, session);

-- One row per full scope: a session of a fact scope, or with an empty name the
-- episodes that name none.
CREATE TABLE sessions (
  id           INTEGER PRIMARY KEY,
  scope_id     INTEGER NOT NULL REFERENCES scopes (id),
  project      TEXT NOT NULL,
  session      TEXT NOT NULL,
  first_seen   INTEGER NOT NULL,
  last_seen    INTEGER NOT NULL,
  last_ordinal INTEGER NOT NULL,
  ended_at     INTEGER,
  end_cause    TEXT NOT NULL DEFAULT '',
  live         INTEGER NOT NULL DEFAULT 0,
  UNIQUE (scope_id, session)
);
CREATE INDEX sessions_by_name ON sessions (project, session);
CREATE INDEX sessions_open ON sessions (scope_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_idle ON sessions (last_seen, id)
  WHERE ended_at IS NULL AND live = 1 AND session <> '';

CREATE TABLE session_ends (
  scope_id     INTEGER NOT NULL,
  last_ordinal INTEGER NOT NULL,
  session      TEXT NOT NULL,
  cause        TEXT NOT NULL,
  at           INTEGER NOT NULL,
  PRIMARY KEY (scope_id, last_ordinal, session)
) WITHOUT ROWID;

CREATE TABLE episodes (
  row         INTEGER PRIMARY KEY,
  scope_id    INTEGER NOT NULL,
  place_id    INTEGER NOT NULL,
  ordinal     INTEGER NOT NULL,
  id          TEXT NOT NULL,
  source      TEXT NOT NULL,
  ts          INTEGER NOT NULL,
  ts_offset   INTEGER NOT NULL,
  arrived     INTEGER NOT NULL,
  role        TEXT NOT NULL,
  mode        TEXT NOT NULL,
  flags       INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  node        TEXT NOT NULL,
  correlation TEXT NOT NULL,
  prompt      TEXT NOT NULL,
  metadata    TEXT,
  content     TEXT NOT NULL,
  UNIQUE (scope_id, id, source, place_id),
  UNIQUE (scope_id, ordinal)
);
CREATE INDEX episodes_by_scope ON episodes (scope_id, ts, ordinal);
CREATE INDEX episodes_by_place ON episodes (place_id, ts, ordinal);
CREATE INDEX episodes_in_place ON episodes (place_id, ordinal);

CREATE TABLE rule_states (
  scope_id   INTEGER NOT NULL,
  rule       TEXT NOT NULL,
  watermark  INTEGER,
  candidates INTEGER NOT NULL DEFAULT 0,
  decided    INTEGER NOT NULL DEFAULT 0,
  held       INTEGER NOT NULL DEFAULT 0,
  dropped    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (scope_id, rule)
) WITHOUT ROWID;

CREATE TABLE skips (
  scope_id INTEGER NOT NULL,
  rule     TEXT NOT NULL,
  above    INTEGER NOT NULL,
  upto     INTEGER NOT NULL,
  PRIMARY KEY (scope_id, rule, above)
) WITHOUT ROWID;

-- A rule is watched from the first time it is asked what is pending; from then
-- on a row of pending stands exactly while a scope is above its watermark.
CREATE TABLE watched (
  rule TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE pending (
  rule     TEXT NOT NULL,
  project  TEXT NOT NULL,
  key      TEXT NOT NULL,
  scope_id INTEGER NOT NULL,
  PRIMARY KEY (rule, project, key)
) WITHOUT ROWID;

CREATE TABLE claims (
  scope_id  INTEGER NOT NULL,
  rule      TEXT NOT NULL,
  project   TEXT NOT NULL,
  above     INTEGER NOT NULL,
  upto      INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  under_way INTEGER NOT NULL,
  PRIMARY KEY (scope_id, rule)
) WITHOUT ROWID;
CREATE INDEX claims_under_way ON claims (project) WHERE under_way = 1;

CREATE TABLE fires (
  rule TEXT PRIMARY KEY,
  at   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE facts (
  row           INTEGER PRIMARY KEY,
  scope_id      INTEGER NOT NULL,
  id            TEXT NOT NULL,
  revision      INTEGER NOT NULL,
  kind          TEXT NOT NULL,
  hash          TEXT NOT NULL,
  subject       TEXT NOT NULL,
  predicate     TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  event_time    INTEGER NOT NULL,
  valid_from    INTEGER NOT NULL,
  valid_until   INTEGER,
  archived_at   INTEGER,
  strength      REAL NOT NULL,
  access_count  INTEGER NOT NULL,
  last_accessed INTEGER NOT NULL,
  prune_at      INTEGER,
  terms         INTEGER NOT NULL,
  body          TEXT NOT NULL,
  UNIQUE (id, scope_id)
);
CREATE INDEX facts_by_time ON facts (scope_id, created_at, id);
CREATE INDEX facts_by_hash ON facts (scope_id, hash);
CREATE INDEX facts_by_predicate ON facts (scope_id, subject, predicate);
CREATE INDEX facts_to_prune ON facts (prune_at) WHERE prune_at IS NOT NULL;

CREATE TABLE fact_sessions (
  fact    INTEGER NOT NULL,
  session TEXT NOT NULL,
  PRIMARY KEY (fact, session)
) WITHOUT ROWID;
CREATE INDEX fact_sessions_by_name ON fact_sessions (session, fact);

CREATE TABLE versions (
  scope_id  INTEGER NOT NULL,
  id        TEXT NOT NULL,
  revision  INTEGER NOT NULL,
  hash      TEXT NOT NULL,
  subject   TEXT NOT NULL,
  predicate TEXT NOT NULL,
  body      TEXT NOT NULL,
  PRIMARY KEY (id, scope_id, revision)
) WITHOUT ROWID;
CREATE INDEX versions_by_hash ON versions (scope_id, hash);
CREATE INDEX versions_by_predicate ON versions (scope_id, subject, predicate);

CREATE TABLE entities (
  scope_id INTEGER NOT NULL,
  id       TEXT NOT NULL,
  body     TEXT NOT NULL,
  PRIMARY KEY (scope_id, id)
) WITHOUT ROWID;
CREATE TABLE entity_names (
  scope_id INTEGER NOT NULL,
  name     TEXT NOT NULL,
  id       TEXT NOT NULL,
  PRIMARY KEY (scope_id, name, id)
) WITHOUT ROWID;
CREATE INDEX entity_names_by_id ON entity_names (scope_id, id);

CREATE TABLE edges (
  scope_id  INTEGER NOT NULL,
  id        TEXT NOT NULL,
  source_id TEXT NOT NULL,
  target_id TEXT NOT NULL,
  body      TEXT NOT NULL,
  PRIMARY KEY (scope_id, id)
) WITHOUT ROWID;
CREATE INDEX edges_by_source ON edges (scope_id, source_id);
CREATE INDEX edges_by_target ON edges (scope_id, target_id);

CREATE TABLE holds (
  scope_id INTEGER NOT NULL,
  id       TEXT NOT NULL,
  held_at  INTEGER NOT NULL,
  body     TEXT NOT NULL,
  PRIMARY KEY (scope_id, id)
) WITHOUT ROWID;

CREATE TABLE outcomes (
  row         INTEGER PRIMARY KEY,
  project     TEXT NOT NULL,
  correlation TEXT NOT NULL,
  revision    INTEGER NOT NULL,
  scope_id    INTEGER NOT NULL,
  expires     INTEGER NOT NULL,
  body        TEXT NOT NULL
);
CREATE INDEX outcomes_by_correlation ON outcomes (project, correlation, revision);
CREATE INDEX outcomes_by_expiry ON outcomes (expires);

CREATE TABLE requests (
  row         INTEGER PRIMARY KEY,
  project     TEXT NOT NULL,
  route       TEXT NOT NULL,
  key         TEXT NOT NULL,
  body_hash   TEXT NOT NULL,
  correlation TEXT NOT NULL,
  status      INTEGER NOT NULL,
  body        BLOB,
  expires     INTEGER NOT NULL,
  UNIQUE (project, route, key)
);
CREATE INDEX requests_by_expiry ON requests (expires);

CREATE TABLE cache (
  row      INTEGER PRIMARY KEY,
  scope_id INTEGER NOT NULL,
  key      TEXT NOT NULL,
  value    BLOB NOT NULL,
  expires  INTEGER NOT NULL,
  UNIQUE (scope_id, key)
);
CREATE INDEX cache_by_expiry ON cache (expires);

-- The text index. A token is the scope's id, a separator and a term, so that a
-- posting list never holds another scope's rows; the rowid is the document's
-- row and its length (see index.go). The vocabulary tables read posting lists.
CREATE VIRTUAL TABLE episode_text USING fts5 (
  terms, content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE fact_text USING fts5 (
  terms, content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE episode_postings USING fts5vocab (episode_text, instance);
CREATE VIRTUAL TABLE fact_postings USING fts5vocab (fact_text, instance);

-- Vectors are little-endian float32, clustered by scope as a search reads them.
CREATE TABLE episode_vectors (
  scope_id INTEGER NOT NULL,
  row      INTEGER NOT NULL,
  vector   BLOB NOT NULL,
  PRIMARY KEY (scope_id, row)
) WITHOUT ROWID;
CREATE TABLE fact_vectors (
  scope_id INTEGER NOT NULL,
  row      INTEGER NOT NULL,
  vector   BLOB NOT NULL,
  PRIMARY KEY (scope_id, row)
) WITHOUT ROWID;

-- The rows that lack their vector, oldest first.
CREATE TABLE vector_queue (
  seq    INTEGER PRIMARY KEY,
  target INTEGER NOT NULL,
  row    INTEGER NOT NULL,
  UNIQUE (target, row)
);
