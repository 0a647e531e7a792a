-- The trace that an episode's way through the pipeline is part of; null where it
-- was not traced.
ALTER TABLE episodes ADD COLUMN trace TEXT;
