// Package redisdouble is a double of Redis 8 with its Query Engine, for tests
// where there is no real one: it speaks the protocol on a loopback port, to any
// number of processes, and answers what internal/store/redis sends as the real
// server does.
//
// Keys, scripts and transactions are miniredis's. The search commands are this
// package's: queries are parsed, and evaluated exactly, over the hashes in
// memory. testdata holds what Redis 8.0.2 with RediSearch 8.0 answered to the
// same commands, and RediSearch 8.4.10 answers the same; record it anew with
//
//	TEST_REDIS_URL=redis://… go test ./internal/testengine/redisdouble -update
//
// The adapter's tests fail when it sends a command whose shape is not recorded.
//
// # Limits
//
// The double refuses all else with an error that begins with REDISDOUBLE; it never
// guesses. It knows
//
//   - the commands in commands.go, in database 0, of one server that is no
//     cluster; search commands in protocol 3 only, outside transactions and
//     scripts;
//   - hashes with TAG, NUMERIC, TEXT (NOSTEM) and VECTOR (FLOAT32, COSINE)
//     fields; a vector without a direction counts as unreadable;
//   - DIALECT 2: tags, ranges, comparisons, terms (VERBATIM: no stems, prefixes
//     or phrases), intersection, union, negation, KNN as the whole query;
//   - FT.AGGREGATE with LOAD, FILTER (comparisons with constants, and logic),
//     SORTBY, GROUPBY with COUNT, SUM and MIN, and LIMIT.
//
// It differs from the real server in that
//
//   - an HNSW index is searched exactly, as a FLAT one is;
//   - an index over existing rows is complete when FT.CREATE returns, its rows in
//     the order of their keys;
//   - scores are BM25STD by today's rows, where the real server counts deleted
//     ones until its garbage collector has run;
//   - distances agree to about six digits, because sums of float32 are made in
//     another order;
//   - groups come in the order of their values;
//   - a syntax error names another offset, other errors of misuse may have another
//     text, and a hash that a script returns is sorted by its fields;
//   - FT.INFO, INFO and CONFIG GET answer with the fields that clients here read;
//   - nothing is on disk, nothing is evicted, memory is never short, and the
//     remaining time to live of a key does not shrink, though it ends in time.
package redisdouble
