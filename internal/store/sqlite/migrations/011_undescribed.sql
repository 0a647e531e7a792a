-- From when on an entity is due for a summary; null for one that is not.
ALTER TABLE entities ADD COLUMN describe_at INTEGER;
UPDATE entities SET describe_at = unixepoch(json_extract(body, '$.last_updated')) * 1000000
  WHERE json_extract(body, '$.mention_count') >= 3 AND json_extract(body, '$.canonical_name') <> 'user'
    AND json_extract(body, '$.summary') IS NULL;
CREATE INDEX entities_to_describe ON entities (describe_at) WHERE describe_at IS NOT NULL;
