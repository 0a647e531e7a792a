package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/poll"
)

// schemaVersion numbers the layout of rows and index. A change that older rows
// cannot follow takes the next number, and a migration or a new generation. 2 added
// the lookups, 3 the wait queue, 4 the lookups of edges.
const schemaVersion = 4

// The keys of a generation that belong to no scope.
const (
	keyMeta    = "meta"
	keyFire    = "fire"
	keyRequest = "request"
)

// schema are the fields of the one index. Tags keep case and are separated by a
// comma, which no encoded value holds. Terms come stemmed and encoded.
func schema() []any {
	tag := func(name string) []any { return []any{name, "TAG", "SEPARATOR", ",", "CASESENSITIVE"} }
	sortable := func(name string) []any {
		return []any{name, "TAG", "SEPARATOR", ",", "CASESENSITIVE", "SORTABLE", "UNF"}
	}
	var fields []any
	for _, name := range []string{
		"k", "sc", "p", "u", "a", // kind, scope, levels
		"id", "src", "kind", "hash", "pred", "ses", "arch", "name", "fact", "corr", // of rows
	} {
		fields = append(fields, tag(name)...)
	}
	for _, name := range []string{"x", "okey", "oid"} {
		fields = append(fields, sortable(name)...)
	}
	for _, name := range []string{"ts", "ord", "q", "rev", "ct", "held", "seq", "ed", "el", "fd", "fl"} {
		fields = append(fields, name, "NUMERIC", "SORTABLE")
	}
	for _, name := range []string{"et", "vf", "vu", "prune", "last"} {
		fields = append(fields, name, "NUMERIC")
	}
	return append(fields, "t", "TEXT", "NOSTEM")
}

// spaceFields are the part of the schema that a space adds.
func (s *Store) spaceFields(sp space) (fields []any) {
	if sp.ID > 1 {
		fields = []any{sp.flag(), "NUMERIC"}
	}
	return append(fields, s.vectorField(sp)...)
}

// vectorField is none while the dimensions are not known.
func (s *Store) vectorField(sp space) []any {
	dimensions := sp.Embedder.Dimensions
	if dimensions == 0 {
		return nil
	}
	if s.cfg.Vectors == HNSW {
		return []any{
			sp.vector(), "VECTOR", "HNSW", 12, "TYPE", "FLOAT32", "DIM", dimensions, "DISTANCE_METRIC", "COSINE",
			"M", s.cfg.M, "EF_CONSTRUCTION", s.cfg.EFConstruction, "EF_RUNTIME", s.cfg.EFRuntime,
		}
	}
	return []any{sp.vector(), "VECTOR", "FLAT", 6, "TYPE", "FLOAT32", "DIM", dimensions, "DISTANCE_METRIC", "COSINE"}
}

// makeIndex creates the index where there is none, points the alias at it unless
// it is under construction, and waits until it is whole: one over rows that exist
// is filled behind the server's reply.
//
// Filling reads every key of the server, also those of other programs. A generation
// without rows skips it.
func (s *Store) makeIndex(ctx context.Context) error {
	args := []any{
		"FT.CREATE", s.layout().index(), "ON", "HASH", "PREFIX", 1, s.layout().root(),
		"NOOFFSETS", "NOHL", "STOPWORDS", 0,
	}
	if _, err := s.indexInfo(ctx); err != nil {
		rows, err := s.hasRows(ctx, s.layout())
		if err != nil {
			return err
		}
		if !rows {
			args = append(args, "SKIPINITIALSCAN")
		}
	}
	args = append(append(args, "SCHEMA"), schema()...)
	m := s.tenure().spaces.Load()
	for _, sp := range m.all() {
		args = append(args, s.spaceFields(sp)...)
	}
	for _, gone := range m.Dropped {
		if gone.ID > 1 {
			args = append(args, gone.flag(), "NUMERIC")
		}
	}
	if _, err := s.call(ctx, args...); err != nil && !strings.Contains(err.Error(), "Index already exists") {
		return err
	}
	if !s.cfg.Building {
		if _, err := s.call(ctx, "FT.ALIASUPDATE", s.layout().alias(), s.layout().index()); err != nil {
			return err
		}
	}
	return s.awaitIndex(ctx)
}

// errFound ends a search of the keys.
var errFound = errors.New("found")

// hasRows reports whether a generation has any row. Other keys of it belong to no
// scope.
func (s *Store) hasRows(ctx context.Context, l layout) (bool, error) {
	err := s.eachKey(ctx, l, func(_ context.Context, _ goredis.Cmdable, keys []string) error {
		if slices.ContainsFunc(keys, func(key string) bool { return !strings.HasPrefix(key, l.root()+":") }) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// indexPoll is how often a filling index is asked how far it is.
const indexPoll = 50 * time.Millisecond

func (s *Store) awaitIndex(ctx context.Context) error {
	done := ""
	err := poll.Until(ctx, indexPoll, func() (bool, error) {
		info, err := s.indexInfo(ctx)
		done = info["percent_indexed"]
		if err != nil || info["indexing"] == "1" || info.float("percent_indexed") < 1 {
			return false, err
		}
		s.watchFailures(info)
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the index (%s done): %w", done, err)
	}
	return nil
}

func (s *Store) indexInfo(ctx context.Context) (fields, error) {
	reply, err := s.call(ctx, "FT.INFO", s.layout().index())
	if err != nil {
		return nil, err
	}
	m, ok := reply.(map[any]any)
	if !ok {
		return nil, fmt.Errorf("redis: FT.INFO answered with %T", reply)
	}
	info := hashOf(reply)
	if failed, ok := m["Index Errors"]; ok {
		info["last error"] = hashOf(failed)["last indexing error"]
	}
	return info, nil
}

// watchFailures tells of rows that the index leaves out whole, text and all,
// because one field could not be read.
func (s *Store) watchFailures(info fields) {
	n := info.uint("hash_indexing_failures")
	if last := s.tenure().failures.Swap(n); n > last {
		s.cfg.Logger.Error("the search index left rows out", "index", s.layout().index(), "rows", n, "error", info["last error"])
	}
}
