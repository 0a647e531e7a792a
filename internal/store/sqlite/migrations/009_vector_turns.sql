-- Projects take turns in the queue of texts to embed. A text that the embedder
-- refuses stays in it with the reason, and is not asked for again.
ALTER TABLE vector_queue ADD COLUMN project TEXT;
ALTER TABLE vector_queue ADD COLUMN refused TEXT;
UPDATE vector_queue SET project = (
  SELECT project FROM scopes WHERE id = CASE target
    WHEN 2 THEN (SELECT scope_id FROM episodes e WHERE e.row = vector_queue.row)
    ELSE (SELECT scope_id FROM facts f WHERE f.row = vector_queue.row)
  END
);
CREATE INDEX vector_queue_turns ON vector_queue (project, seq) WHERE refused IS NULL;
CREATE INDEX vector_queue_refused ON vector_queue (seq) WHERE refused IS NOT NULL;
