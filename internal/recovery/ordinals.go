package recovery

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"palimpsest/internal/audit"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/ingest"
)

// ordinals finds how many episodes of each scope EPISODES has dropped that no
// store has either. The ordinals of the remaining episodes start after that count.
//
// An effect that names an episode was committed when a rule had come at least as
// far: if the k-th remaining episode is named while the watermark of the furthest
// rule is m, at most m-k episodes come before it. The least of these counts is never
// below the true one. So no episode that a rule has yet to see gets an ordinal below
// its watermark. A rule may see some episodes again and finds them known. If effects
// name no remaining episode of a scope, its rules see all of them again.
type ordinals struct{ scopes map[scope.Scope]*tally }

type tally struct {
	whole bool               // the stored and the remaining episodes overlap: no gap
	count uint64             // of remaining episodes
	left  map[string][]place // by id
	mark  uint64             // the furthest watermark of any rule
	known bool               // an episode was named
	least uint64             // if known: the least upper bound of dropped episodes
}

type place struct {
	memory.Episode
	at uint64 // from 1
}

func (o *ordinals) say(e memory.Episode) {
	t := o.tally(e.Scope.Fact())
	same := func(p place) bool { return p.Scope == e.Scope && p.Source == e.Source }
	if slices.ContainsFunc(t.left[e.ID], same) {
		return
	}
	t.count++
	e.Content, e.Metadata = "", nil // the ids of all that is left are held at a time
	t.left[e.ID] = append(t.left[e.ID], place{e, t.count})
}

func (o *ordinals) tally(fact scope.Scope) *tally {
	if o.scopes == nil {
		o.scopes = map[scope.Scope]*tally{}
	}
	t := o.scopes[fact]
	if t == nil {
		t = &tally{left: map[string][]place{}}
		o.scopes[fact] = t
	}
	return t
}

// commit takes an effect; those of a scope come by revision, some twice.
func (o *ordinals) commit(e events.EffectCommitted) {
	t := o.scopes[e.Scope]
	if t == nil {
		return
	}
	if e.Range != nil {
		t.mark = max(t.mark, e.Range.To)
	}
	if e.Watermark != nil {
		t.mark = max(t.mark, *e.Watermark)
	}
	for _, f := range e.Facts {
		for _, id := range f.SourceEpisodeIDs {
			t.name(e, f, t.left[id])
		}
	}
}

// name takes the episodes of an id that a fact may rest on. Ids are unique in a
// session and source alone: which one is meant must be beyond doubt.
func (t *tally) name(e events.EffectCommitted, f events.Fact, of []place) {
	if len(of) != 1 {
		return
	}
	p := of[0]
	if p.ArrivedAt.After(e.CommittedAt) || p.Scope.Session != "" && !slices.Contains(f.SessionIDs, p.Scope.Session) {
		return
	}
	dropped := t.mark - min(t.mark, p.at)
	if !t.known || dropped < t.least {
		t.known, t.least = true, dropped
	}
}

// dropped is at least how many came before those that are left, or as many as
// were seen.
func (t *tally) dropped() uint64 {
	if t.known {
		return min(t.least, t.mark)
	}
	return t.mark
}

// met takes an episode that EPISODES and a store both have. A partition is stored
// in stream order: if the message is the same too, the scope lacks no episode
// between the stored and the remaining ones.
func (o *ordinals) met(e, stored memory.Episode) {
	if e.Seq != stored.Seq {
		return // a later repetition
	}
	o.tally(e.Scope.Fact()).whole = true
}

// Counting sets the ordinal after which each scope continues.
type Counting struct {
	Ingest   *ingest.Service
	Episodes ingest.Replay       // EPISODES
	Log      audit.EffectArchive // the audit log; nil if only AUDIT can be read
	Journal  audit.TailReader    // AUDIT
	Live     store.EpisodeReader // the present store; nil for none
	Into     store.EpisodeWriter
}

// Run counts the episodes of EPISODES that the present store lacks.
func (c Counting) Run(ctx context.Context) error {
	var o ordinals
	err := c.Ingest.Episodes(ctx, c.Episodes, func(e memory.Episode) error {
		if c.Live == nil {
			o.say(e)
			return nil
		}
		stored, err := c.Live.Episode(ctx, e.Scope, e.Source, e.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			o.say(e)
			return nil
		case err == nil:
			o.met(e, stored)
		}
		return err
	})
	if err != nil {
		return err
	}
	maps.DeleteFunc(o.scopes, func(_ scope.Scope, t *tally) bool { return t.whole || t.count == 0 })
	// The audit log comes first: it holds effects that AUDIT has dropped.
	for fact := range o.scopes {
		if c.Log == nil {
			break
		}
		if err := o.read(c.Log.Effects(ctx, fact, 0)); err != nil {
			return fmt.Errorf("count episodes: %w", err)
		}
	}
	if err := o.read(c.Journal.All(ctx, 0)); err != nil {
		return fmt.Errorf("count episodes: %w", err)
	}
	for fact, t := range o.scopes {
		if err := c.Into.CountFrom(ctx, fact, t.dropped()); err != nil {
			return fmt.Errorf("count episodes of %s: %w", fact, err)
		}
	}
	return nil
}

func (o *ordinals) read(effects iter.Seq2[events.Event[events.EffectCommitted], error]) error {
	for e, err := range effects {
		if err != nil {
			return err
		}
		o.commit(e.Data)
	}
	return nil
}
