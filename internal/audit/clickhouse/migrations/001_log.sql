-- Each delta as it was applied. Rows with one key (project, scope, revision,
-- idx) are equal; the engine keeps one of them in the end, and readers must not
-- count on it: LIMIT 1 BY the key, or FINAL. Levels that are absent are ''.
CREATE TABLE IF NOT EXISTS audit{everywhere} (
    project           String,
    scope             String COMMENT 'key of the fact scope',
    revision          UInt64 COMMENT 'of the scope, from 1',
    idx               UInt32 COMMENT 'of the delta in its effect, from 0',
    user_id           String,
    agent_id          String,
    session_id        String,
    sequence          UInt64 COMMENT 'in the AUDIT stream' CODEC(Delta, ZSTD),
    delta_id          String,
    kind              LowCardinality(String),
    reason            LowCardinality(String),
    rule              LowCardinality(String) COMMENT 'the consolidation rule',
    rule_id           LowCardinality(String) COMMENT 'the pattern, key or prompt',
    decided_by        LowCardinality(String),
    confidence        Float64,
    fact_id           String,
    before            String COMMENT 'version of the fact, JSON' CODEC(ZSTD),
    after             String COMMENT 'version of the fact, JSON' CODEC(ZSTD),
    sources           Array(String) COMMENT 'ids of episodes',
    request_id        String,
    candidate_id      String,
    correlation_id    String,
    event_time        Nullable(DateTime64(9, 'UTC')) COMMENT 'of the fact; NULL outside the years 1900 to 2261',
    decided_at        DateTime64(9, 'UTC'),
    applied_at        DateTime64(9, 'UTC'),
    apply_latency_ms  Int64 ALIAS dateDiff('millisecond', decided_at, applied_at),
    known_latency_ms  Nullable(Int64) ALIAS dateDiff('millisecond', event_time, applied_at),
    llm_model         LowCardinality(String) DEFAULT if(startsWith(decided_by, 'llm:'), substring(decided_by, 5), ''),
    llm_input_tokens  UInt32,
    llm_output_tokens UInt32,
    llm_cost          Nullable(Float64),

    INDEX by_fact fact_id TYPE bloom_filter GRANULARITY 1,
    INDEX by_correlation correlation_id TYPE bloom_filter GRANULARITY 1,
    INDEX by_sequence sequence TYPE minmax GRANULARITY 1
) ENGINE = {ReplacingMergeTree}
PARTITION BY toYYYYMM(applied_at)
ORDER BY (project, scope, revision, idx)
SETTINGS non_replicated_deduplication_window = 1000;

-- Each effect whole, with what its envelope said and what it settles in the
-- ledger. Rows with one key (project, scope, revision) are equal.
CREATE TABLE IF NOT EXISTS effects{everywhere} (
    project        String,
    scope          String,
    revision       UInt64,
    sequence       UInt64 CODEC(Delta, ZSTD),
    id             String,
    source         LowCardinality(String),
    at             DateTime64(9, 'UTC'),
    correlation_id String,
    causation_id   String,
    rule           LowCardinality(String),
    committed_at   DateTime64(9, 'UTC'),
    episodes       UInt32,
    candidates     UInt32,
    decided        UInt32,
    held           UInt32,
    dropped        UInt32,
    skipped        UInt32,
    effect         String COMMENT 'JSON' CODEC(ZSTD(3))
) ENGINE = {ReplacingMergeTree}
PARTITION BY toYYYYMM(committed_at)
ORDER BY (project, scope, revision)
SETTINGS non_replicated_deduplication_window = 1000;

-- Deltas a day, for the reports. A sum would count what is delivered twice
-- twice; a set of keys does not: uniqExactMerge(deltas).
CREATE TABLE IF NOT EXISTS daily_deltas{everywhere} (
    project    String,
    day        Date,
    rule       LowCardinality(String),
    kind       LowCardinality(String),
    reason     LowCardinality(String),
    decided_by LowCardinality(String),
    deltas     AggregateFunction(uniqExact, UInt64)
) ENGINE = {AggregatingMergeTree}
PARTITION BY toYYYYMM(day)
ORDER BY (project, day, rule, kind, reason, decided_by)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS daily_deltas_view{everywhere} TO daily_deltas AS
SELECT project, toDate(applied_at) AS day, rule, kind, reason, decided_by,
    uniqExactState(sipHash64(scope, revision, idx)) AS deltas
FROM audit
GROUP BY project, day, rule, kind, reason, decided_by;
