package redis

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"palimpsest/pkg/scope"
)

// The constants of BM25.
const (
	k1 = 1.2
	b1 = 0.75
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
func (c corpus) counts(p place) []any {
	command := append(make([]any, 0, len(c.terms)+2), "HMGET", p.words(c.kind))
	for _, term := range c.terms {
		command = append(command, term)
	}
	return command
}

// maxPlaces is from how many scopes on the index counts the texts that hold a
// term, in place of each scope's own counts.
const maxPlaces = 16

// weigh searches for the candidates and reads what they are weighed by: in one
// round trip where the selector is one scope, in two where it spans some.
func (s *Store) weigh(ctx context.Context, c corpus, candidates []any) (bm25, answer, error) {
	rank := bm25{frequency: map[string]float64{}}
	if fact, ok := c.alone(); ok {
		p := s.place(fact)
		replies, err := s.pipe(ctx, [][]any{candidates, append([]any{"HMGET", p.state()}, c.fields()...), c.counts(p)})
		if err != nil {
			return rank, answer{}, err
		}
		size := pick([]string{"docs", "length"}, replies[1])
		rank.add(c, size.float("docs"), size.float("length"), replies[2])
		a, err := parseAnswer(replies[0])
		return rank, a, err
	}
	states := of(kindState).within(s.layout(), c.sel)
	fields := c.fields()
	replies, err := s.pipe(ctx, [][]any{candidates, s.searchArgs(states, maxPlaces+1, returning(append([]any{"p", "u", "a", "x"}, fields...)...)...)})
	if err != nil {
		return rank, answer{}, err
	}
	a, err := parseAnswer(replies[0])
	if err != nil {
		return rank, a, err
	}
	held, err := parseAnswer(replies[1])
	if err != nil {
		return rank, a, err
	}
	if len(held.rows) > maxPlaces {
		rank, err = s.weighMany(ctx, c)
		return rank, a, err
	}
	err = s.weighFew(ctx, c, held.rows, &rank)
	return rank, a, err
}

// weighFew sums the counts of some scopes, whose states are rows.
func (s *Store) weighFew(ctx context.Context, c corpus, rows []found, rank *bm25) error {
	commands := make([][]any, len(rows))
	for i, row := range rows {
		fact, err := owner(row.fields)
		if err != nil {
			return err
		}
		commands[i] = c.counts(s.place(fact))
	}
	replies, err := s.pipe(ctx, commands)
	names := c.fields()
	for i, reply := range replies {
		rank.add(c, rows[i].float(text(names[0])), rows[i].float(text(names[1])), reply)
	}
	return err
}

// weighMany has the index count.
func (s *Store) weighMany(ctx context.Context, c corpus) (bm25, error) {
	rank := bm25{frequency: map[string]float64{}}
	names := c.fields()
	commands := make([][]any, 0, len(c.terms)+1)
	commands = append(commands, s.aggregateArgs(of(kindState).within(s.layout(), c.sel), "GROUPBY", 0,
		"REDUCE", "SUM", 1, "@"+text(names[0]), "AS", "docs", "REDUCE", "SUM", 1, "@"+text(names[1]), "AS", "length"))
	for _, term := range c.terms {
		commands = append(commands, s.searchArgs(of(c.kind).within(s.layout(), c.sel).anyTerm([]string{term}), 0, "VERBATIM"))
	}
	replies, err := s.pipe(ctx, commands)
	for i, reply := range replies {
		a, err := parseAnswer(reply)
		switch {
		case err != nil:
			return rank, err
		case i > 0:
			rank.frequency[c.terms[i-1]] = float64(a.total)
		case len(a.rows) > 0:
			rank.docs, rank.length = a.rows[0].float("docs"), a.rows[0].float("length")
		}
	}
	return rank, err
}

// bm25 scores texts by the documents of one selector.
type bm25 struct {
	docs, length float64
	frequency    map[string]float64 // documents that hold a term
}

// order sets the scores of rows by how often they hold the terms, best first.
func (r bm25) order(terms []string, rows []found) {
	at := make(map[string]int, len(terms))
	weights, counts := make([]float64, len(terms)), make([]float64, len(terms))
	for i, term := range terms {
		n := r.frequency[term]
		at[term] = i
		weights[i] = math.Log1p((max(r.docs-n, 0)+0.5)/(n+0.5)) * (k1 + 1)
	}
	average := max(r.length/max(r.docs, 1), 1)
	for n := range rows {
		clear(counts)
		length := 0.0
		for term := range strings.FieldsSeq(rows[n].fields["t"]) {
			length++
			if i, asked := at[term]; asked {
				counts[i]++
			}
		}
		rows[n].score = 0
		for i, tf := range counts {
			if tf > 0 {
				rows[n].score += weights[i] * tf / (tf + k1*(1-b1+b1*length/average))
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b found) int { return cmp.Compare(b.score, a.score) })
}

// add counts the texts of one more scope.
func (r *bm25) add(c corpus, docs, length float64, counts any) {
	r.docs += docs
	r.length += length
	held := pick(c.terms, counts)
	for _, term := range c.terms {
		r.frequency[term] += held.float(term)
	}
}
