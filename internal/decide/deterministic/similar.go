package deterministic

import (
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// alike is the token-set Jaccard from which two texts say the same, unless
// their marks differ.
const alike = 0.85

// similar is step 3: the same in other words changes nothing, unless it is
// strictly more specific.
func (d *decision) similar() (bool, error) {
	if d.c.RuleID == memory.RuleVerbatim {
		return false, nil // kept as it was said
	}
	equal, err := d.view.answering(tripleOf(d.c), d.c.Cardinality, triple(d.c.Subject, d.c.Predicate, d.c.Object))
	if err != nil {
		return false, err
	}
	for _, f := range equal { // the same triple, from another episode
		if d.comparable(f) && !differInDetail(d.marks, f.Text) {
			return true, d.repeat(f)
		}
	}
	hits, err := d.view.similar(d.c.Text, d.rare(alike), d.words, alike)
	if err != nil {
		return false, err
	}
	best, score := events.Fact{}, 0.0
	for _, f := range hits {
		if !d.comparable(f) || f.Subject != d.c.Subject || !sameObject(f, d.c) || differs(d.marks, f.Text) {
			continue
		}
		if s := lex.Jaccard(d.words, d.view.wordsOf(&f)); s > score {
			best, score = f, s
		}
	}
	if score == 0 {
		return false, nil
	}
	return true, d.repeat(best)
}

// repeat records that a fact was said again, and rewrites it where the new text
// has all its words and more.
func (d *decision) repeat(f events.Fact) error {
	if !d.view.newer(f, d.c) && refines(f.Text, d.c.Text) {
		return d.update(events.ReasonRefinement, d.withSources(d.fact, f), f.ID)
	}
	return d.noop(events.ReasonDuplicate, f.ID)
}

func (d *decision) comparable(f events.Fact) bool {
	return d.sameKind(f) && d.view.current(f, d.c.EventTime)
}

// sameObject reports whether two facts can be one: with both triples given,
// another object makes another fact.
func sameObject(f events.Fact, c events.Candidate) bool {
	return f.Object == "" || c.Object == "" || plain(f.Object) == plain(c.Object)
}

// withSources adds the sources and sessions of the facts that a version also
// rests on.
func (d *decision) withSources(version events.Fact, rests ...events.Fact) events.Fact {
	for _, f := range rests {
		version.SourceEpisodeIDs = union(f.SourceEpisodeIDs, version.SourceEpisodeIDs)
		version.SessionIDs = union(f.SessionIDs, version.SessionIDs)
	}
	return version
}
