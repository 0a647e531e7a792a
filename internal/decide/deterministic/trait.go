package deterministic

import (
	"slices"

	"palimpsest/pkg/events"
)

// trait is what versions are found by in a view, so that a candidate costs what
// it has in common with the known, not all that is known.
type trait struct {
	what               aspect
	subject, predicate string
	value              string // hash, plain object, or episode
}

type aspect int

const (
	ofHash   aspect = iota
	ofKey           // subject and predicate
	ofSingle        // a key of which one value holds at a time
	ofTriple        // a key and its object, as objects are compared
	ofSource        // a key and an episode that the version rests on
)

func hashed(hash string) trait { return trait{what: ofHash, value: hash} }

func keyed(subject, predicate string) trait {
	return trait{what: ofKey, subject: subject, predicate: predicate}
}

func single(subject, predicate string) trait {
	return trait{what: ofSingle, subject: subject, predicate: predicate}
}

func triple(subject, predicate, object string) trait {
	return trait{what: ofTriple, subject: subject, predicate: predicate, value: plain(object)}
}

func sourced(subject, predicate, episode string) trait {
	return trait{what: ofSource, subject: subject, predicate: predicate, value: episode}
}

// of reports whether a version has the trait.
func (t trait) of(f *events.Fact) bool {
	switch t.what {
	case ofHash:
		return f.Hash == t.value
	case ofKey:
		return f.Subject == t.subject && f.Predicate == t.predicate
	case ofSingle:
		return f.Subject == t.subject && f.Predicate == t.predicate && f.Cardinality == events.One
	case ofTriple:
		return f.Subject == t.subject && f.Predicate == t.predicate && plain(f.Object) == t.value
	case ofSource:
		return f.Subject == t.subject && f.Predicate == t.predicate && slices.Contains(f.SourceEpisodeIDs, t.value)
	}
	return false
}

// note files a version under its traits.
func (v *view) note(f *events.Fact) {
	v.file(hashed(f.Hash), f.ID)
	if f.Subject == "" || f.Predicate == "" {
		return
	}
	v.file(keyed(f.Subject, f.Predicate), f.ID)
	v.file(triple(f.Subject, f.Predicate, f.Object), f.ID)
	if f.Cardinality == events.One {
		v.file(single(f.Subject, f.Predicate), f.ID)
	}
	for _, id := range f.SourceEpisodeIDs {
		v.file(sourced(f.Subject, f.Predicate, id), f.ID)
	}
}

func (v *view) file(t trait, id string) {
	ids := v.having[t]
	if ids == nil {
		ids = make(map[string]bool, 1)
		v.having[t] = ids
	}
	ids[id] = true
}
