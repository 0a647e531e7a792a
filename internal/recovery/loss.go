package recovery

import (
	"context"
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/pkg/scope"
)

// Loss is what a rebuilt store has fewer of than the store that it replaces.
type Loss struct {
	Episodes uint64 `json:"episodes"`
	Facts    uint64 `json:"facts"`
}

// Total is the sum.
func (l Loss) Total() uint64 { return l.Episodes + l.Facts }

// LossError says that a rebuilt store would replace one that has more.
type LossError struct{ Loss }

func (e *LossError) Error() string {
	return fmt.Sprintf("the rebuilt store lacks %d episodes and %d facts of the live one, which stays; --accept-loss %d replaces it all the same",
		e.Episodes, e.Facts, e.Total())
}

// count finds what the rebuilt store lacks, and how far its effects go.
func (r *Rebuild) count(ctx context.Context) error {
	made, err := r.made.Stats(ctx)
	if err != nil {
		return err
	}
	places := uint64(0)
	err = each(ctx, r.made, nil, func(_ scope.Scope, state memory.State) error {
		places += state.LastOrdinal
		r.out.AuditEnd = max(r.out.AuditEnd, state.AuditSeq)
		return nil
	})
	if err != nil {
		return err
	}
	r.out.Lost.Episodes = r.lacks
	if !r.whole && (r.live != nil || r.damaged) {
		// The live store cannot be counted. Effects name the places of episodes: a
		// place without an episode is a loss.
		r.out.Lost.Episodes = max(r.lacks, less(places, uint64(r.out.Episodes)))
	}
	if r.had != nil {
		r.out.Lost.Facts = less(r.had.Facts, made.Facts)
	}
	return nil
}

func less(live, made uint64) uint64 { return live - min(live, made) }
