-- Sessions of which nothing live was said are not looked at when a message comes.
DROP INDEX sessions_open;
CREATE INDEX sessions_open ON sessions (scope_id) WHERE ended_at IS NULL AND live = 1 AND session <> '';
