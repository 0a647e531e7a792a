-- What a held candidate would change, and when its time comes; null for never.
-- Rows of before have neither: nothing was held that way.
ALTER TABLE holds ADD COLUMN fact_id TEXT;
ALTER TABLE holds ADD COLUMN due INTEGER;
CREATE INDEX holds_by_due ON holds (due, scope_id, id) WHERE due IS NOT NULL;
CREATE INDEX holds_by_id ON holds (id);
