// Package redistest is a double of Redis 8 with its Query Engine, for tests
// where there is no real one: it speaks the protocol on a loopback port, to any
// number of processes, and answers what internal/store/redis sends as the real
// server does.
//
// Keys, scripts and transactions are miniredis's. The search commands are this
// package's: queries are parsed, and evaluated exactly, over the hashes in
// memory. testdata holds what Redis 8.0.2 with RediSearch 8.0 answered to the
// same commands; record it anew with
//
//	TEST_REDIS_URL=redis://… go test ./internal/redistest -update
//
// # Limits
//
// What the double does not know it refuses with an error that begins with
// REDISTEST; it never guesses. It knows
//
//   - the commands in commands.go, in database 0; nothing that blocks or
//     subscribes; search commands in protocol 3 only, outside transactions and
//     scripts;
//   - hashes with TAG, NUMERIC, TEXT and VECTOR (FLOAT32, COSINE) fields;
//   - DIALECT 2: tags, ranges, comparisons, terms (VERBATIM: no stemming,
//     prefixes or phrases), intersection, union, negation, KNN as the whole
//     query;
//   - FT.AGGREGATE with LOAD, FILTER (comparisons and logic), SORTBY, GROUPBY
//     with COUNT and SUM, and LIMIT.
//
// It differs from the real server in that
//
//   - an HNSW index is searched exactly, as a FLAT one is;
//   - an index over rows that exist is whole when FT.CREATE returns;
//   - scores are BM25STD by today's rows, where the real server counts deleted
//     ones until its garbage collector has run;
//   - distances agree to about six digits, because sums of float32 are made in
//     another order;
//   - rows of equal rank come in the order of their last write, groups in that of
//     their values; total_results of FT.AGGREGATE, which is an estimate there, is
//     the number of rows that match;
//   - a syntax error names another offset; FT.INFO and INFO answer with those
//     fields that somebody reads;
//   - nothing is written to disk, no key is evicted, and keys expire up to
//     expiryPeriod late.
package redistest
