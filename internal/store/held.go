package store

import (
	"slices"
	"time"

	"palimpsest/internal/memory"
)

// Keeps reports whether q keeps a version that held at q.ValidAt.
func (q FactQuery) Keeps(f Fact) bool {
	return (q.ValidAt.IsZero() || memory.ValidAt(f.Fact, q.ValidAt)) &&
		(q.Session == nil || slices.Contains(f.SessionIDs, *q.Session)) &&
		(len(q.Kinds) == 0 || slices.Contains(q.Kinds, f.Kind)) &&
		(q.IncludeArchived || f.ArchivedAt == nil)
}

// Held replaces each newest version that had not begun at q.ValidAt by the version
// that held then, drops those that q does not keep, and keeps the order of newest.
// earlier are versions of the same fact scopes, in any order.
func (q FactQuery) Held(newest, earlier []Fact) []Fact {
	held := make(map[string]Fact)
	for _, v := range earlier {
		key := v.Scope.Key() + v.ID
		if known, ok := held[key]; !v.ValidFrom.After(q.ValidAt) && (!ok || known.Revision < v.Revision) {
			held[key] = v
		}
	}
	out := make([]Fact, 0, len(newest))
	for _, f := range newest {
		if Begun(f, q.ValidAt) {
			out = append(out, f)
		} else if v, ok := held[f.Scope.Key()+f.ID]; ok && v.Revision < f.Revision && q.Keeps(v) {
			out = append(out, v)
		}
	}
	return out
}

// Begun reports whether a newest version is the one that held at an instant; zero
// stands for now and ever.
func Begun(f Fact, at time.Time) bool { return at.IsZero() || !f.ValidFrom.After(at) }
