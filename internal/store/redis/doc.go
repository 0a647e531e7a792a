// Package redis is the memory store on Redis 8 with its Query Engine: rows are
// hashes, found through one search index a generation, and written by scripts,
// each over keys of one fact scope alone.
//
// It imports its contract, the nouns and one driver. It decides nothing: what it
// writes is what an effect or an episode says. docs/adr holds why the keys and
// the index look as they do.
package redis
