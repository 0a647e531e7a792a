-- What reports count of a record. The default is for rows of before. (A default
-- must not rest on a column that queries filter by: the server may evaluate it
-- before it has read that.)
ALTER TABLE audit{everywhere}
    ADD COLUMN IF NOT EXISTS value String DEFAULT JSONExtractString(after, 'hash') COMMENT 'hash of the text that the fact has after it',
    ADD COLUMN IF NOT EXISTS llm_calls UInt32;

-- What reports count of an effect, and whose it is.
ALTER TABLE effects{everywhere}
    ADD COLUMN IF NOT EXISTS user_id String DEFAULT decodeURLComponent(extract(scope, '^/user/([^/]+)/')),
    ADD COLUMN IF NOT EXISTS session_id String DEFAULT decodeURLComponent(extract(scope, '^(?:/user/[^/]+)?/session/([^/]+)/')),
    ADD COLUMN IF NOT EXISTS agent_id String DEFAULT decodeURLComponent(extract(scope, '^(?:/user/[^/]+)?(?:/session/[^/]+)?/agent/([^/]+)/')),
    ADD COLUMN IF NOT EXISTS extractor LowCardinality(String) DEFAULT JSONExtractString(effect, 'extractor'),
    ADD COLUMN IF NOT EXISTS adds UInt32 DEFAULT arrayCount(
        a -> JSONExtractString(a, 'delta', 'kind') = 'add' AND JSONExtractString(a, 'fact_id') != '', JSONExtractArrayRaw(effect, 'applied'));
