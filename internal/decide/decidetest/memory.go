package decidetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Memory is what is known of one scope, every version of it. It commits
// decisions through memory.Plan and answers lookups. It is
// not safe for concurrent use.
type Memory struct {
	scope    scope.Scope
	versions map[string][]events.Fact // by id, oldest first
	held     map[string]events.Hold
	revision uint64
}

var _ decide.Lookup = (*Memory)(nil)

// NewMemory returns a memory of a fact scope that knows nothing.
func NewMemory(fact scope.Scope) *Memory {
	return &Memory{scope: fact, versions: map[string][]events.Fact{}, held: map[string]events.Hold{}}
}

// Revision counts the effects applied.
func (m *Memory) Revision() uint64 { return m.revision }

// Held returns the held buffer, by id.
func (m *Memory) Held() []events.Hold {
	var out []events.Hold
	for _, id := range slices.Sorted(maps.Keys(m.held)) {
		out = append(out, m.held[id])
	}
	return out
}

// Hold puts something into the held buffer.
func (m *Memory) Hold(h events.Hold) { m.held[h.ID] = h }

// Facts returns the newest version of each fact, by id.
func (m *Memory) Facts() []events.Fact {
	return m.where(func(f events.Fact) bool { return m.newest(f.ID).Revision == f.Revision })
}

// History returns every version of every fact, by id and revision.
func (m *Memory) History() []events.Fact {
	return m.where(func(events.Fact) bool { return true })
}

// ValidAt returns the facts that are valid at t and not archived, by id.
func (m *Memory) ValidAt(t time.Time) []events.Fact {
	return slices.DeleteFunc(m.Facts(), func(f events.Fact) bool {
		return !memory.ValidAt(f, t) || f.ArchivedAt != nil
	})
}

// Apply commits a decision on candidates, as the consolidator would.
func (m *Memory) Apply(d decide.Decision, candidates []events.Candidate, at time.Time) error {
	_, err := m.Commit(events.DeltasDecided{
		Batch: events.Batch{
			Header: events.Header{Scope: m.scope}, Rule: memory.RuleTurn, Cause: events.CauseEvery,
			Range: events.Range{From: m.revision, To: m.revision + 1},
		},
		Basis: m.revision, Deltas: d.Deltas, Mentions: d.Mentions, Candidates: candidates,
	}, at)
	return err
}

// Commit plans a decided batch and makes its effects known.
func (m *Memory) Commit(batch events.DeltasDecided, at time.Time) ([]events.EffectCommitted, error) {
	needed, err := m.ByID(context.Background(), memory.NeededFacts(batch))
	if err != nil {
		return nil, err
	}
	effects, err := memory.Plan(memory.PlanInput{
		State: memory.State{Scope: m.scope, Revision: m.revision}, Batch: batch,
		Facts: needed, Earlier: m.History(), Held: m.Held(), At: at,
	})
	if err != nil {
		return nil, err
	}
	for _, e := range effects {
		for _, f := range append(e.Versions, e.Facts...) {
			m.put(f)
		}
		for _, h := range e.Holds {
			m.held[h.ID] = h
		}
		for _, id := range e.Released {
			delete(m.held, id)
		}
		m.revision = e.Revision
	}
	return effects, nil
}

func (m *Memory) put(f events.Fact) {
	list := m.versions[f.ID]
	at, found := slices.BinarySearchFunc(list, f.Revision, func(known events.Fact, revision uint64) int {
		return cmp.Compare(known.Revision, revision)
	})
	if found {
		list[at] = f
		return
	}
	m.versions[f.ID] = slices.Insert(list, at, f)
}

func (m *Memory) newest(id string) events.Fact {
	list := m.versions[id]
	return list[len(list)-1]
}

func (m *Memory) where(match func(events.Fact) bool) []events.Fact {
	var out []events.Fact
	for _, id := range slices.Sorted(maps.Keys(m.versions)) {
		for _, f := range m.versions[id] {
			if match(f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// ByID implements [decide.Lookup].
func (m *Memory) ByID(_ context.Context, ids []string) ([]events.Fact, error) {
	return slices.DeleteFunc(m.Facts(), func(f events.Fact) bool { return !slices.Contains(ids, f.ID) }), nil
}

// ByHash implements [decide.Lookup].
func (m *Memory) ByHash(_ context.Context, hashes []string) ([]events.Fact, error) {
	return m.where(func(f events.Fact) bool { return slices.Contains(hashes, f.Hash) }), nil
}

// ByPredicate implements [decide.Lookup].
func (m *Memory) ByPredicate(_ context.Context, subject, predicate string) ([]events.Fact, error) {
	return m.where(func(f events.Fact) bool { return f.Subject == subject && f.Predicate == predicate }), nil
}

// ByTriple implements [decide.Lookup].
func (m *Memory) ByTriple(_ context.Context, ts []events.Triple) ([]events.Fact, error) {
	return m.where(func(f events.Fact) bool {
		return slices.ContainsFunc(ts, func(t events.Triple) bool {
			return f.Subject == t.Subject && f.Predicate == t.Predicate &&
				(f.Cardinality == events.One || lex.Object(f.Object) == lex.Object(t.Object))
		})
	}), nil
}

// Versions implements [decide.Lookup].
func (m *Memory) Versions(_ context.Context, id string) ([]events.Fact, error) {
	return slices.Clone(m.versions[id]), nil
}

// Similar implements [decide.Lookup]: by token-set Jaccard.
func (m *Memory) Similar(_ context.Context, text string, limit int) ([]events.Fact, error) {
	words := lex.NewSet(text)
	open := slices.DeleteFunc(m.Facts(), func(f events.Fact) bool {
		return f.ValidUntil != nil || f.ArchivedAt != nil || lex.Jaccard(words, lex.NewSet(f.Text)) == 0
	})
	slices.SortStableFunc(open, func(a, b events.Fact) int {
		return cmp.Compare(lex.Jaccard(words, lex.NewSet(b.Text)), lex.Jaccard(words, lex.NewSet(a.Text)))
	})
	return open[:min(limit, len(open))], nil
}
