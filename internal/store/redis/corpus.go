package redis

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// corpus is the texts by which the words of a query are weighed.
type corpus struct {
	kind  string // of their rows
	sel   scope.Selector
	terms []string
}

// fields are those of a state that say how many texts there are, and how many
// words they have together.
func (c corpus) fields() []any {
	if c.kind == kindFact {
		return []any{"fd", "fl"}
	}
	return []any{"ed", "el"}
}

// alone is the one fact scope of the corpus, where its selector names it.
func (c corpus) alone() (fact scope.Scope, ok bool) {
	sel := c.sel
	if c.kind == kindEpisode && sel.Session == nil && sel.User != nil && *sel.User != "" {
		sel.Session = new(string) // its scope has no session, whatever theirs is
	}
	return sel.Fact()
}

// counts asks how many texts of a scope each term is in.
func (c corpus) counts(p place) []any { return with(c.terms, "HMGET", p.words(c.kind)) }

// maxPlaces is from how many scopes on the index counts the texts that hold a
// term, in place of each scope's own counts.
const maxPlaces = 16

// maxWeighings is how often the scopes that a selector spans are asked for while
// they become more.
const maxWeighings = 3

// weigh reads what texts are weighed by, and searches for candidates, in places or all
// that the selector names. Of few scopes the counts come first: a search that they narrow
// takes less than the round trip costs. The command of the search is nil where no text
// can be found.
func (s *Store) weigh(ctx context.Context, c corpus, candidates func(rank bm25, in ...place) []any) (bm25, answer, error) {
	if fact, ok := c.alone(); ok {
		rank, a, _, err := s.weighFew(ctx, c, []scope.Scope{fact}, candidates)
		return rank, a, err
	}
	t := s.tenure()
	for range maxWeighings {
		facts, err := s.spanned(ctx, t, c.sel)
		switch {
		case err != nil || len(facts) == 0:
			return bm25{frequency: map[string]float64{}}, answer{}, err
		case len(facts) > maxPlaces:
			return s.weighMany(ctx, c, candidates(bm25{}))
		}
		rank, a, counted, err := s.weighFew(ctx, c, facts, candidates, s.searchArgs(c.states(t.layout), 0)...)
		if err != nil || answerOf(counted).total == uint64(len(facts)) && !s.isLost() {
			return rank, a, err
		}
		t.spans.Take(c.sel.String()) // there is another by now
	}
	return s.weighMany(ctx, c, candidates(bm25{}))
}

// states finds the rows of the scopes that a corpus is of.
func (c corpus) states(l layout) *query { return of(kindState).within(l, c.sel) }

// weighFew sums the counts of some scopes. count, if any, asks whether there are more
// by now.
func (s *Store) weighFew(
	ctx context.Context, c corpus, facts []scope.Scope, candidates func(rank bm25, in ...place) []any, count ...any,
) (rank bm25, a answer, counted any, err error) {
	places := make([]place, len(facts))
	commands := make([][]any, 0, 2*len(facts)+1)
	for i, fact := range facts {
		places[i] = s.place(fact)
		commands = append(commands, append([]any{"HMGET", places[i].state()}, c.fields()...), c.counts(places[i]))
	}
	if len(count) > 0 {
		commands = append(commands, count)
	}
	replies, err := s.pipe(ctx, commands)
	if err != nil {
		return rank, a, nil, err
	}
	rank.frequency = map[string]float64{}
	for i := range facts {
		size := pick([]string{"docs", "length"}, replies[2*i])
		rank.add(c, size.float("docs"), size.float("length"), replies[2*i+1])
	}
	if len(count) > 0 {
		counted = replies[len(replies)-1]
	}
	if search := candidates(rank, places...); search != nil {
		a, err = s.search(ctx, search)
	}
	return rank, a, counted, err
}

// weighMany has the index count.
func (s *Store) weighMany(ctx context.Context, c corpus, candidates []any) (bm25, answer, error) {
	rank := bm25{frequency: map[string]float64{}}
	names := c.fields()
	commands := make([][]any, 0, len(c.terms)+2)
	commands = append(commands, candidates, s.aggregateArgs(c.states(s.layout()), "GROUPBY", 0,
		"REDUCE", "SUM", 1, "@"+text(names[0]), "AS", "docs", "REDUCE", "SUM", 1, "@"+text(names[1]), "AS", "length"))
	for _, term := range c.terms {
		commands = append(commands, s.searchArgs(of(c.kind).within(s.layout(), c.sel).anyTerm([]string{term}), 0, "VERBATIM"))
	}
	replies, err := s.pipe(ctx, commands)
	if err != nil {
		return rank, answer{}, err
	}
	answers := make([]answer, len(replies))
	for i, reply := range replies {
		answers[i] = answerOf(reply)
	}
	if sums := answers[1].rows; len(sums) > 0 {
		rank.Texts, rank.Terms = toFloat(sums[0].get("docs")), toFloat(sums[0].get("length"))
	}
	for i, term := range c.terms {
		rank.frequency[term] = float64(answers[2+i].total)
	}
	return rank, answers[0], nil
}

// bm25 scores texts by the documents of one selector.
type bm25 struct {
	lex.BM25
	frequency map[string]float64 // documents that hold a term
}

// telling are the terms that some text holds, and those of them by which the best fetch
// texts are found: a text that holds only the others, which are frequent, weighs no more
// than texts enough that hold a rarer term (the principle of MaxScore, Turtle and Flood
// 1995, on estimates). Without counts all terms are both.
func (r bm25) telling(terms []string, fetch int) (held, telling []string) {
	if r.frequency == nil {
		return terms, terms
	}
	for _, term := range terms {
		if r.frequency[term] > 0 {
			held = append(held, term)
		}
	}
	byRarity := func(a, b string) int { return cmp.Compare(r.frequency[a], r.frequency[b]) }
	telling = slices.SortedStableFunc(slices.Values(held), byRarity)
	texts, enough := 0.0, 0
	for enough < len(telling) && texts < float64(fetch) {
		texts += r.frequency[telling[enough]]
		enough++
	}
	if texts < float64(fetch) {
		return held, telling
	}
	least, others := r.Weight(r.frequency[telling[enough-1]]), 0.0
	for last := len(telling) - 1; last >= enough; last-- {
		if others += r.Weight(r.frequency[telling[last]]); others > least {
			break
		}
		telling = telling[:last]
	}
	return held, telling
}

// order sets the scores of rows by how often they hold the terms, best first.
func (r bm25) order(terms []string, rows []found) {
	at := make(map[string]int, len(terms))
	weights, counts := make([]float64, len(terms)), make([]float64, len(terms))
	for i, term := range terms {
		at[term] = i
		weights[i] = r.Weight(r.frequency[term])
	}
	for n := range rows {
		clear(counts)
		length := 0.0
		for term := range bytes.FieldsSeq(rows[n].view("t")) {
			length++
			if i, asked := at[string(term)]; asked {
				counts[i]++
			}
		}
		norm := r.Norm(length)
		rows[n].score = 0
		for i, tf := range counts {
			if tf > 0 {
				rows[n].score += weights[i] * tf / (tf + norm)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b found) int { return cmp.Compare(b.score, a.score) })
}

// counts is what the terms of a text are weighed by.
func (r bm25) counts(text string) store.TextCounts {
	c := store.TextCounts{Documents: uint64(r.Texts), Terms: uint64(r.Terms), Holding: map[string]uint64{}}
	for _, term := range lex.Terms(text) {
		if n, asked := r.frequency[indexTerm(term)]; asked {
			c.Holding[term] = uint64(n)
		}
	}
	return c
}

// add counts the texts of one more scope.
func (r *bm25) add(c corpus, docs, length float64, counts any) {
	r.Texts += docs
	r.Terms += length
	held := pick(c.terms, counts)
	for _, term := range c.terms {
		r.frequency[term] += held.float(term)
	}
}
