package deterministic

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// view is what is known while a batch is decided: the store's facts as far as
// they were asked for, and over them what the batch has decided.
type view struct {
	ctx      context.Context //nolint:containedctx // lives as long as one Decide call
	known    decide.Known
	ordinals map[string]uint64 // of the batch's episodes
	hashes   []string          // of the batch's texts, until they are asked for
	triples  []events.Triple   // of its candidates, likewise
	asked    map[string]bool   // lookups made
	versions map[string][]events.Fact
	having   map[trait]map[string]bool // ids of which a version has the trait
	complete map[string]bool           // ids whose newest version is among versions
	changed  map[string]bool           // ids that the batch added or changed
	words    map[string]lex.Set        // of facts, by hash of text
	waiting  []waiting                 // what the breaker holds
	out      decide.Decision
}

func newView(ctx context.Context, known decide.Known, candidates []events.Candidate) *view {
	v := &view{
		ctx: ctx, known: known, ordinals: map[string]uint64{}, asked: map[string]bool{},
		versions: map[string][]events.Fact{}, having: map[trait]map[string]bool{}, complete: map[string]bool{}, changed: map[string]bool{}, words: map[string]lex.Set{},
		waiting: heldForChurn(known.Held),
		out:     decide.Decision{Deltas: events.Deltas{}, Mentions: map[string][]events.Mention{}},
	}
	for _, c := range candidates {
		v.hashes = append(v.hashes, memory.HashText(c.Text))
		if c.Cardinality != events.One && !c.Negated && c.Subject != "" && c.Predicate != "" {
			v.triples = append(v.triples, tripleOf(c))
		}
		for _, id := range c.SourceEpisodeIDs {
			v.ordinals[id] = max(v.ordinals[id], c.Ordinal)
		}
	}
	return v
}

// byHash returns every version with that hash of text, in a stable order.
func (v *view) byHash(hash string) ([]events.Fact, error) {
	if !v.asked["hash:"+hash] {
		// The batch's hashes are known from the start, but for a text that stays.
		hashes := append([]string{hash}, v.hashes...)
		facts, err := v.known.Lookup.ByHash(v.ctx, hashes)
		if err != nil {
			return nil, err
		}
		for _, h := range hashes {
			v.asked["hash:"+h] = true
		}
		v.hashes = nil
		if err := v.learn(facts); err != nil {
			return nil, err
		}
	}
	return v.find(hashed(hash)), nil
}

// byKey returns every version with that subject and predicate.
func (v *view) byKey(subject, predicate string) ([]events.Fact, error) {
	if subject == "" || predicate == "" {
		return nil, nil
	}
	err := v.ask(keyName(subject, predicate), func() ([]events.Fact, error) {
		return v.known.Lookup.ByPredicate(v.ctx, subject, predicate)
	})
	return v.find(keyed(subject, predicate)), err
}

// answering returns the versions with one of the traits, all of which imply the
// triple's subject and predicate, and that the version has its object or either
// of the two has cardinality one. Others of that subject and predicate may be
// many, as a user can like a thousand things, and are not looked up.
func (v *view) answering(t events.Triple, c events.Cardinality, traits ...trait) ([]events.Fact, error) {
	if t.Subject == "" || t.Predicate == "" {
		return nil, nil
	}
	if c == events.One || v.asked[keyName(t.Subject, t.Predicate)] {
		_, err := v.byKey(t.Subject, t.Predicate)
		return v.find(traits...), err
	}
	if !v.asked[tripleName(t)] {
		// Those of the batch are known from the start.
		triples := append([]events.Triple{t}, v.triples...)
		facts, err := v.known.Lookup.ByTriple(v.ctx, triples)
		if err != nil {
			return nil, err
		}
		for _, t := range triples {
			v.asked[tripleName(t)] = true
		}
		v.triples = nil
		if err := v.learn(facts); err != nil {
			return nil, err
		}
	}
	return v.find(traits...), nil
}

func keyName(subject, predicate string) string {
	return "key:" + strconv.Quote(subject) + strconv.Quote(predicate)
}

func tripleName(t events.Triple) string {
	return keyName(t.Subject, t.Predicate) + strconv.Quote(plain(t.Object))
}

// byID returns the newest version of each id that exists.
func (v *view) byID(ids []string) (map[string]events.Fact, error) {
	if err := v.finish(ids); err != nil {
		return nil, err
	}
	found := make(map[string]events.Fact, len(ids))
	for _, id := range ids {
		if len(v.versions[id]) > 0 {
			found[id] = v.newest(id)
		}
	}
	return found, nil
}

// similar returns the newest versions of facts whose words are alike by at
// least that Jaccard: of those the store finds, and those of the batch. A fact
// that the store has must hold one of the rare words to be among them.
func (v *view) similar(text, rare string, words lex.Set, least float64) ([]events.Fact, error) {
	hits, err := v.searched(text, rare)
	if err != nil {
		return nil, err
	}
	if err := v.learn(hits); err != nil {
		return nil, err
	}
	ids := maps.Clone(v.changed)
	for _, f := range hits {
		ids[f.ID] = true
	}
	var out []events.Fact
	for id := range ids {
		list := v.versions[id]
		if f := &list[len(list)-1]; lex.Jaccard(words, v.wordsOf(f)) >= least {
			out = append(out, *f)
		}
	}
	return sorted(out), nil
}

// searched are the store's most similar facts, none where none holds one of the
// rare words. A search by all words reads what is known of the commonest too.
func (v *view) searched(text, rare string) ([]events.Fact, error) {
	if rare != "" {
		few, err := v.known.Lookup.Similar(v.ctx, rare, 1)
		if err != nil || len(few) == 0 {
			return nil, err
		}
	}
	return v.known.Lookup.Similar(v.ctx, text, similarLimit)
}

// wordsOf is the token set of a fact's text, made once.
func (v *view) wordsOf(f *events.Fact) lex.Set {
	set, ok := v.words[f.Hash]
	if !ok {
		set = lex.NewSet(f.Text)
		v.words[f.Hash] = set
	}
	return set
}

func (v *view) ask(key string, lookup func() ([]events.Fact, error)) error {
	if v.asked[key] {
		return nil
	}
	facts, err := lookup()
	if err != nil {
		return err
	}
	v.asked[key] = true
	return v.learn(facts)
}

// learn takes up versions that the store gave, and looks up the newest of facts
// that were met in an old version.
func (v *view) learn(facts []events.Fact) error {
	var ids []string
	for _, f := range facts {
		v.put(f)
		if !strings.HasPrefix(f.SupersededBy, f.ID+"@") { // no version of its own came after it
			v.complete[f.ID] = true
		}
		ids = append(ids, f.ID)
	}
	return v.finish(ids)
}

func (v *view) finish(ids []string) error {
	var open []string
	for _, id := range ids {
		if !v.complete[id] && !slices.Contains(open, id) {
			open = append(open, id)
		}
	}
	if len(open) == 0 {
		return nil
	}
	facts, err := v.known.Lookup.ByID(v.ctx, open)
	if err != nil {
		return err
	}
	for _, f := range facts {
		v.put(f)
	}
	for _, id := range open {
		v.complete[id] = true
	}
	return nil
}

// put adds a version that is not known yet, in order of revision.
func (v *view) put(f events.Fact) {
	list := v.versions[f.ID]
	at, found := slices.BinarySearchFunc(list, f.Revision, func(known events.Fact, rev uint64) int {
		return int(known.Revision) - int(rev)
	})
	if !found {
		v.versions[f.ID] = slices.Insert(list, at, f)
		v.note(&f)
	}
}

// set replaces or adds the newest version, as the batch decided.
func (v *view) set(f events.Fact) {
	list := v.versions[f.ID]
	if n := len(list); n > 0 && list[n-1].Revision == f.Revision {
		list[n-1] = f
	} else {
		list = append(list, f)
	}
	v.versions[f.ID], v.complete[f.ID], v.changed[f.ID] = list, true, true
	v.note(&f)
}

func (v *view) newest(id string) events.Fact {
	list := v.versions[id]
	return list[len(list)-1]
}

func (v *view) isNewest(f events.Fact) bool { return v.newest(f.ID).Revision == f.Revision }

// find returns the versions with one of the traits, by the time of their statement, id
// and revision.
func (v *view) find(traits ...trait) []events.Fact {
	var out []events.Fact
	for n, t := range traits {
		for id := range v.having[t] {
			list := v.versions[id]
			for i := range list {
				f := &list[i]
				found := slices.ContainsFunc(traits[:n], func(before trait) bool { return before.of(f) })
				if t.of(f) && !found {
					out = append(out, *f)
				}
			}
		}
	}
	return sorted(out)
}

func sorted(facts []events.Fact) []events.Fact {
	slices.SortFunc(facts, func(a, b events.Fact) int {
		return cmp.Or(memory.StatedAt(a).Compare(memory.StatedAt(b)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision))
	})
	return facts
}

// current reports whether f is the newest version of its fact and still holds
// at t, the time of a statement.
func (v *view) current(f events.Fact, t time.Time) bool {
	return v.isNewest(f) && f.ArchivedAt == nil && (f.ValidUntil == nil || f.ValidUntil.After(t))
}

// endOf is when a version that is not current ceased to hold.
func (v *view) endOf(f events.Fact) time.Time {
	switch newest := v.newest(f.ID); {
	case f.ArchivedAt != nil:
		return *f.ArchivedAt
	case f.ValidUntil != nil:
		return *f.ValidUntil
	case newest.Revision != f.Revision:
		return newest.ValidFrom
	}
	return f.ValidFrom
}

// newer reports whether a fact rests on a later statement than a candidate: by its
// time, and at the same time by the order of the batch's episodes.
func (v *view) newer(f events.Fact, c events.Candidate) bool {
	if order := memory.StatedAt(f).Compare(c.EventTime); order != 0 {
		return order > 0
	}
	return v.follows(f, c)
}

// follows reports whether a fact rests on an episode of the batch behind the
// candidate's, whenever that is said to have happened.
func (v *view) follows(f events.Fact, c events.Candidate) bool {
	return slices.ContainsFunc(f.SourceEpisodeIDs, func(id string) bool { return v.ordinals[id] > c.Ordinal })
}

// outlasts reports whether a candidate does not end a fact, because the fact was stated
// or brought back later. The time of an appointment that lies ahead of its statement is
// not that of the statement.
func (v *view) outlasts(f events.Fact, c events.Candidate) bool {
	if f.EventTime.After(f.UpdatedAt) {
		return v.follows(f, c) || f.RestoredAt != nil && f.RestoredAt.After(c.EventTime)
	}
	return v.newer(f, c) || v.follows(f, c)
}
