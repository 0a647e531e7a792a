package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/store"
)

// PutVectors implements [store.VectorWriter]. A vector of another size is refused
// before it is sent: the index would leave out the whole row, its text too.
func (s *Store) PutVectors(ctx context.Context, vectors []store.Vector) error {
	if len(vectors) == 0 {
		return nil
	}
	if err := store.CheckVectors(vectors); err != nil {
		return err
	}
	t, dimensions := s.tenure(), len(vectors[0].Values)
	sp, ok := t.spaces.Load().find(vectors[0].Ref.Space)
	if !ok {
		return fmt.Errorf("put vectors of space %d, which is gone: %w", vectors[0].Ref.Space, store.ErrEmbedder)
	}
	if err := sp.public().Takes(dimensions); err != nil {
		return fmt.Errorf("put vectors: %w", err)
	}
	if sp.Embedder.Dimensions == 0 {
		if err := s.setDimensions(ctx, t, dimensions); err != nil {
			return fmt.Errorf("put vectors: %w", err)
		}
	}
	rows := make([]vectorRow, len(vectors))
	for i, v := range vectors {
		rows[i] = t.vectorRow(v.Ref)
		rows[i].args = append(rows[i].args, encodeVector(v.Values), "")
	}
	if err := s.settleVectors(ctx, t, sp, rows); err != nil {
		return fmt.Errorf("put vectors: %w", err)
	}
	return nil
}

// RefuseVectors implements [store.VectorWriter]. The reason counts while the flag is
// -1. A row that has its vector keeps it.
func (s *Store) RefuseVectors(ctx context.Context, refused []store.RefusedVector) error {
	if len(refused) == 0 {
		return nil
	}
	t := s.tenure()
	sp, ok := t.spaces.Load().find(refused[0].Ref.Space)
	if !ok {
		return nil
	}
	rows := make([]vectorRow, len(refused))
	for i, v := range refused {
		if err := v.Ref.Scope.Validate(); err != nil {
			return err
		}
		rows[i] = t.vectorRow(v.Ref)
		rows[i].args = append(rows[i].args, "", ":"+v.Reason)
	}
	if err := s.settleVectors(ctx, t, sp, rows); err != nil {
		return fmt.Errorf("refuse vectors: %w", err)
	}
	return nil
}

// vectorRow is a row whose flag is to change.
type vectorRow struct {
	place  place
	member string
	args   []any
}

func (t *tenure) vectorRow(ref store.VectorRef) vectorRow {
	p := t.place(ref.Scope.Fact())
	if ref.Target == store.Facts {
		return vectorRow{p, member(kindFact, ref.ID), []any{strconv.FormatUint(ref.Revision, 10)}}
	}
	return vectorRow{p, strings.TrimPrefix(p.episode(ref.Scope.Session, ref.Source, ref.ID), p.base), []any{""}}
}

// rowsAtOnce bounds the rows of one script, so that the server answers others
// between two of them.
const rowsAtOnce = 16

// settleVectors writes rows in one round trip and takes them out of the queue.
func (s *Store) settleVectors(ctx context.Context, t *tenure, sp space, rows []vectorRow) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	together := rowsAtOnce
	if s.cluster() {
		together = 1 // each may be of another slot
	}
	calls := slices.Collect(slices.Chunk(rows, together))
	flags := make([]*goredis.Cmd, len(calls))
	err := s.loaded(ctx, putVectorScript, func() error {
		p := s.client.Pipeline()
		for i, call := range calls {
			var keys []string
			args := sp.fields()
			for _, r := range call {
				keys, args = append(keys, r.place.base+r.member), append(args, r.args...)
			}
			flags[i] = putVectorScript.EvalSha(ctx, p, keys, args...)
		}
		_, err := p.Exec(ctx) // the first error of any
		return err
	})
	if err := explain(err); err != nil {
		return err
	}
	var gone []string
	for i, call := range calls {
		for j, flag := range texts(flags[i].Val()) {
			if n := toInt(flag); n > 0 {
				gone = append(gone, call[j].place.queued(sp, n, call[j].member))
			}
		}
	}
	return s.unlist(ctx, t, gone...)
}
