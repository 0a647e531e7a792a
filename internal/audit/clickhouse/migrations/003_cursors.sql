-- How far the readers that fill the log have come: the newest row of each.
CREATE TABLE IF NOT EXISTS cursors{everywhere} (
    reader   String,
    stream   String,
    sequence UInt64,
    starts   UInt32,
    alone    UInt64,
    deaths   UInt32,
    at       DateTime64(9, 'UTC') DEFAULT now64(9)
) ENGINE = {ReplacingMergeTree}
ORDER BY reader;
