package decider

import (
	"cmp"
	"context"
	"slices"

	"palimpsest/internal/decide"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// trail is a lookup that records what a decision looks at. It is used by one
// decision at a time.
type trail struct {
	decide.Lookup
	facts  map[string]uint64
	hashes map[string]bool
	keys   map[events.Triple]bool
}

func newTrail(l decide.Lookup) *trail {
	return &trail{Lookup: l, facts: map[string]uint64{}, hashes: map[string]bool{}, keys: map[events.Triple]bool{}}
}

// decided adds the texts, subjects and predicates of the candidates. A decision
// depends on them whatever its decider looks up.
func (t *trail) decided(candidates []events.Candidate) {
	for _, c := range candidates {
		t.hashes[memory.HashText(c.Text)] = true
		about := events.Triple{Subject: c.Subject, Predicate: c.Predicate, Object: c.Object}
		if c.Cardinality == events.One || c.Negated {
			about.Object = "" // other values exclude it
		}
		t.key(about)
		for _, r := range c.Retracts {
			t.key(events.Triple{Subject: r.Subject, Predicate: r.Predicate})
		}
	}
}

// footprint is what was recorded.
func (t *trail) footprint() *events.Footprint {
	f := &events.Footprint{Facts: t.facts}
	for hash := range t.hashes {
		f.Hashes = append(f.Hashes, hash)
	}
	slices.Sort(f.Hashes)
	for key := range t.keys {
		whole := events.Triple{Subject: key.Subject, Predicate: key.Predicate}
		if key == whole || !t.keys[whole] {
			f.Keys = append(f.Keys, key)
		}
	}
	slices.SortFunc(f.Keys, func(a, b events.Triple) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Predicate, b.Predicate), cmp.Compare(a.Object, b.Object))
	})
	return f
}

func (t *trail) key(about events.Triple) {
	if about.Subject != "" && about.Predicate != "" {
		t.keys[about] = true
	}
}

// see records the revisions of facts, the highest of the first answer that has
// the fact: what a later one shows was committed meanwhile.
func (t *trail) see(asked []string, found []events.Fact) {
	first := map[string]uint64{}
	for _, id := range asked {
		first[id] = 0
	}
	for _, f := range found {
		first[f.ID] = max(first[f.ID], f.Revision)
	}
	for id, revision := range first {
		if _, seen := t.facts[id]; !seen {
			t.facts[id] = revision
		}
	}
}

// ByID implements [decide.Lookup].
func (t *trail) ByID(ctx context.Context, ids []string) ([]events.Fact, error) {
	found, err := t.Lookup.ByID(ctx, ids)
	t.see(ids, found)
	return found, err
}

// Versions implements [decide.Lookup].
func (t *trail) Versions(ctx context.Context, id string) ([]events.Fact, error) {
	found, err := t.Lookup.Versions(ctx, id)
	t.see([]string{id}, found)
	return found, err
}

// Similar implements [decide.Lookup].
func (t *trail) Similar(ctx context.Context, text string, limit int) ([]events.Fact, error) {
	found, err := t.Lookup.Similar(ctx, text, limit)
	t.see(nil, found)
	return found, err
}

// ByHash implements [decide.Lookup].
func (t *trail) ByHash(ctx context.Context, hashes []string) ([]events.Fact, error) {
	for _, hash := range hashes {
		t.hashes[hash] = true
	}
	return t.Lookup.ByHash(ctx, hashes)
}

// ByPredicate implements [decide.Lookup].
func (t *trail) ByPredicate(ctx context.Context, subject, predicate string) ([]events.Fact, error) {
	t.key(events.Triple{Subject: subject, Predicate: predicate})
	return t.Lookup.ByPredicate(ctx, subject, predicate)
}

// ByTriple implements [decide.Lookup].
func (t *trail) ByTriple(ctx context.Context, ts []events.Triple) ([]events.Fact, error) {
	for _, about := range ts {
		t.key(about)
	}
	return t.Lookup.ByTriple(ctx, ts)
}
