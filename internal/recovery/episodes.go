package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Earlier is the store that another one is to replace.
type Earlier interface {
	store.EpisodeReader
	store.StateReader
	store.Exporter
}

// adopted counts what [adopt] copied.
type adopted struct {
	Episodes   int
	Unreadable int // places that a damaged store could not return
}

// adopt copies the episodes of an earlier store into one under construction.
// Each keeps its ordinal: the streams may lack those before it. An episode whose
// sequence is above last, the newest sequence of EPISODES, is in no stream: its
// sequence becomes 0.
func adopt(ctx context.Context, from Earlier, into store.EpisodeWriter, last uint64, read func()) (out adopted, err error) {
	err = each(ctx, from, func(fact scope.Scope, r events.Range) error {
		page, unread, err := readable(ctx, from, fact, r)
		if err != nil {
			return err
		}
		out.Unreadable += len(unread)
		out.Episodes += len(page)
		return put(ctx, into, fact, page, last, read)
	}, func(fact scope.Scope, state memory.State) error {
		return into.CountFrom(ctx, fact, state.LastOrdinal)
	})
	if err != nil {
		return out, fmt.Errorf("copy episodes of the live store: %w", err)
	}
	return out, nil
}

// put stores a page. It cuts the page where ordinals are missing, so that the
// rest keep theirs.
func put(ctx context.Context, into store.EpisodeWriter, fact scope.Scope, page []memory.Episode, last uint64, read func()) error {
	for len(page) > 0 {
		n := 1
		for n < len(page) && page[n].Ordinal == page[n-1].Ordinal+1 {
			n++
		}
		run := page[:n]
		page = page[n:]
		first := run[0].Ordinal
		for i := range run {
			if run[i].Seq > last {
				run[i].Seq = 0
			}
		}
		if err := into.CountFrom(ctx, fact, first-1); err != nil {
			return fmt.Errorf("count from %d in %s: %w", first, fact, err)
		}
		if _, err := into.PutEpisodes(ctx, run); err != nil {
			return fmt.Errorf("store episodes from %d on of %s: %w", first, fact, err)
		}
		for range run {
			read()
		}
	}
	return nil
}

// readable reads the episodes of a range. Of a damaged store it returns those
// that can be read, and the places that cannot.
func readable(ctx context.Context, from store.EpisodeReader, fact scope.Scope, r events.Range) (page []memory.Episode, unread []uint64, err error) {
	page, err = from.EpisodeRange(ctx, fact, r)
	if !errors.Is(err, store.ErrDamaged) {
		return page, nil, err
	}
	if r.To-r.From == 1 {
		return nil, []uint64{r.To}, nil
	}
	half := r.From + (r.To-r.From)/2
	page, unread, err = readable(ctx, from, fact, events.Range{From: r.From, To: half})
	if err != nil {
		return nil, nil, err
	}
	rest, more, err := readable(ctx, from, fact, events.Range{From: half, To: r.To})
	return append(page, rest...), append(unread, more...), err
}

// compared is how an earlier store differs from the one that is to replace it.
type compared struct {
	// Moved counts the places at which the two hold different episodes, or only
	// one of them holds any. Ranges and watermarks name episodes by their places.
	Moved int
	// Lacking counts the episodes of the earlier store that neither the other one
	// nor EPISODES has.
	Lacking int
	// Unreadable counts the places that the earlier store could not return, Lost
	// those of them at which the other store has nothing.
	Unreadable, Lost int
}

type name struct {
	scope      scope.Scope
	source, id string
}

// compare compares an earlier store, which may still grow, with the one that is
// to replace it. holds reports whether EPISODES holds a message at a sequence: an
// episode of it that the other store lacks was stored meanwhile.
func compare(
	ctx context.Context, from Earlier, now store.EpisodeReader, holds func(context.Context, uint64) (bool, error),
) (out compared, err error) {
	err = each(ctx, from, func(fact scope.Scope, r events.Range) error {
		before, unread, err := readable(ctx, from, fact, r)
		if err != nil {
			return err
		}
		out.Unreadable += len(unread)
		places, sequences := map[uint64]name{}, map[uint64]uint64{}
		for _, e := range before {
			places[e.Ordinal], sequences[e.Ordinal] = name{e.Scope, e.Source, e.ID}, e.Seq
		}
		after, err := now.EpisodeRange(ctx, fact, r)
		if err != nil {
			return err
		}
		for _, at := range unread {
			if !slices.ContainsFunc(after, func(e memory.Episode) bool { return e.Ordinal == at }) {
				out.Lost++
			}
		}
		for _, e := range after {
			here := name{e.Scope, e.Source, e.ID}
			switch there, ok := places[e.Ordinal]; {
			case ok && there == here:
				delete(places, e.Ordinal)
			case !ok && !slices.Contains(unread, e.Ordinal):
				out.Moved++
			}
		}
		out.Moved += len(places)
		for ordinal, n := range places {
			lacks, err := absent(ctx, now, n, sequences[ordinal], holds)
			if err != nil {
				return err
			}
			if lacks {
				out.Lacking++
			}
		}
		return nil
	}, nil)
	if err != nil {
		return out, fmt.Errorf("compare episodes: %w", err)
	}
	return out, nil
}

// absent reports whether neither a store nor EPISODES has an episode.
func absent(
	ctx context.Context, now store.EpisodeReader, n name, sequence uint64, holds func(context.Context, uint64) (bool, error),
) (bool, error) {
	if _, err := now.Episode(ctx, n.scope, n.source, n.id); !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if sequence == 0 {
		return true, nil
	}
	held, err := holds(ctx, sequence)
	return !held, err
}

// pageSize is how many places are read together.
const pageSize = 200

// each calls visit with every fact scope of a store, range by range, and then
// done with the state of the scope. Either may be nil.
func each(
	ctx context.Context, from Earlier, visit func(scope.Scope, events.Range) error, done func(scope.Scope, memory.State) error,
) error {
	projects, err := from.Projects(ctx)
	if err != nil {
		return err
	}
	for _, project := range projects {
		var failed error
		err := from.Scopes(ctx, scope.Selector{Project: project}, func(fact scope.Scope) bool {
			state, err := from.State(ctx, fact)
			for at := uint64(0); visit != nil && err == nil && at < state.LastOrdinal; at += pageSize {
				err = visit(fact, events.Range{From: at, To: min(at+pageSize, state.LastOrdinal)})
			}
			if err == nil && done != nil {
				err = done(fact, state)
			}
			failed = err
			return err == nil
		})
		if err := errors.Join(failed, err); err != nil {
			return err
		}
	}
	return nil
}
