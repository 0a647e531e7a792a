-- The object of a fact that may have many, as objects are compared; null for one
-- of which a single value holds, and for rows of before. What says the same of
-- a thousand is found by it.
ALTER TABLE facts ADD COLUMN object TEXT;
ALTER TABLE versions ADD COLUMN object TEXT;
CREATE INDEX facts_by_object ON facts (scope_id, subject, predicate, object);
CREATE INDEX versions_by_object ON versions (scope_id, subject, predicate, object);
-- They begin with the same columns.
DROP INDEX facts_by_predicate;
DROP INDEX versions_by_predicate;
