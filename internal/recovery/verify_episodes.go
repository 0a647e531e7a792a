package recovery

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// mark is a hash of an episode: key and content.
type mark uint64

func markOf(e memory.Episode) mark {
	h := fnv.New64a()
	for _, part := range []string{e.Scope.Key(), e.Scope.Project, e.Source, e.ID, string(e.Role), e.Content} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash does not fail
	}
	return mark(h.Sum64())
}

func nameOf(e memory.Episode) string {
	return fmt.Sprintf("%q of %s (message %d)", e.ID, e.Scope, e.Seq)
}

// store reads every episode and the state of every scope.
func (v *verification) store(ctx context.Context) error {
	step, end := v.Part("store", 0)
	defer end()
	err := each(ctx, v.Store, func(fact scope.Scope, r events.Range) error {
		page, unread, err := readable(ctx, v.Store, fact, r)
		if err != nil {
			return err
		}
		for _, at := range unread {
			v.differ("places of the store cannot be read", fmt.Sprintf("%d of %s", at, fact))
		}
		for _, e := range page {
			v.out.Episodes++
			if e.Seq == 0 {
				v.out.OnlyStore++
				continue
			}
			v.stored[e.Seq] = markOf(e)
		}
		step(len(page))
		return nil
	}, func(fact scope.Scope, state memory.State) error {
		v.scopes[fact] = state
		v.out.Scopes++
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	return nil
}

// episodes compares EPISODES with the store. The store was read before: it has
// nothing that EPISODES had not then.
func (v *verification) episodes(ctx context.Context) error {
	extent, err := v.Sources.Episodes.Extent(ctx)
	if err != nil {
		return err
	}
	step, end := v.Part("episodes", extent.Messages)
	defer end()
	err = v.Said(ctx, func(e memory.Episode) error {
		step(1)
		has, ok := v.stored[e.Seq]
		delete(v.stored, e.Seq)
		switch {
		case !ok:
			v.absent = append(v.absent, e)
		case has != markOf(e):
			v.differ("episodes differ between EPISODES and the store", nameOf(e))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read EPISODES: %w", err)
	}
	for sequence := range v.stored {
		if sequence < extent.First {
			v.out.Dropped++
			continue
		}
		v.differ("episodes of the store are not in EPISODES", fmt.Sprintf("message %d", sequence))
	}
	if err := v.await(ctx, func() (bool, error) { return v.stillAbsent(ctx) }); err != nil {
		return err
	}
	for _, e := range v.absent {
		v.differ("episodes of EPISODES are not in the store", nameOf(e))
	}
	return nil
}

// stillAbsent keeps the episodes that the store has under no sequence: one that was
// said twice is stored once.
func (v *verification) stillAbsent(ctx context.Context) (bool, error) {
	left := v.absent[:0]
	for _, e := range v.absent {
		switch _, err := v.Store.Episode(ctx, e.Scope, e.Source, e.ID); {
		case errors.Is(err, store.ErrNotFound):
			left = append(left, e)
		case err != nil:
			return false, fmt.Errorf("look up episode %s: %w", nameOf(e), err)
		}
	}
	v.absent = left
	return len(left) > 0, nil
}
