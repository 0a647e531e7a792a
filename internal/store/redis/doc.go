// Package redis is the memory store on Redis 8 with its Query Engine: rows are
// hashes, found through one search index a generation, and written by scripts, each
// over keys of one fact scope alone.
//
// It imports its contract, the nouns and one driver. It makes no decisions: it
// writes the content of effects and episodes. docs/adr explains the form of the keys
// and the index.
package redis
