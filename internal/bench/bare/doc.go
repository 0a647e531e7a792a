// Package bare holds the engines that Palimpsest is measured against, each doing the
// same work by itself: a JetStream server, inserts into SQLite, and a search over FTS5
// and contiguous vectors.
//
// The package imports the drivers itself: a limit measured through packages of
// Palimpsest would be no limit.
package bare
