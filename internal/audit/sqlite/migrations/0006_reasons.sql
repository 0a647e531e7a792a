-- Why and by what a delta was decided, where reports count by it; empty elsewhere.
-- The reason of a noop is NULL until it is measured.
ALTER TABLE record_rows ADD COLUMN reason TEXT;
ALTER TABLE record_rows ADD COLUMN rule_id TEXT;

CREATE INDEX record_rows_unreasoned ON record_rows (place, revision) WHERE kind = 'noop' AND reason IS NULL;
CREATE INDEX record_rows_by_reason ON record_rows (project, reason, applied_at) WHERE reason > '';

DROP VIEW records;
CREATE VIEW records AS
    SELECT r.project, p.scope, r.revision, r.idx, p.user_id, p.agent_id, p.session_id, r.sequence, r.applied_at,
        r.kind, r.rule, r.correlation, r.fact_id, r.value, r.known_ms, r.model, r.reason, r.rule_id
    FROM record_rows r CROSS JOIN places p ON p.id = r.place;
