package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/filter"
	"palimpsest/internal/graph"
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/retrieval/attribute"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// graphLeg is the name of the channel of what facts relate to the people and things of
// the question.
const graphLeg = "graph"

// Graph reads entities and what relates them; its methods are those of
// [store.FactReader] and [store.Exporter].
type Graph interface {
	Scopes(ctx context.Context, sel scope.Selector, yield func(scope.Scope) bool) error
	Entities(ctx context.Context, fact scope.Scope, names []string) ([]events.Entity, error)
	Edges(ctx context.Context, fact scope.Scope, nodes []string) ([]events.Edge, error)
	FactsByID(ctx context.Context, fact scope.Scope, ids []string) ([]store.Fact, error)
	FactsByPredicate(ctx context.Context, fact scope.Scope, subject, predicate string) ([]store.Fact, error)
	Facts(ctx context.Context, sel scope.Selector, q store.FactQuery) ([]store.Fact, error)
}

// Bounds of a walk.
const (
	maxOwners  = 8  // fact scopes
	maxReached = 8  // entities after each relation
	maxEdges   = 50 // from the entities that the question names
	maxFanOut  = 20
	graphHits  = 30 // texts that name what was reached
)

// nearFact is the score of a fact that an edge reaches, beside the 1 of a text that
// names the end of the relations that the question lists.
const nearFact = 0.5

// path is what a question says of relations: those of "my brother's wife" lead from the
// asker over has_brother to has_wife.
type path struct {
	relations []relation
	own       bool // it may begin at the asker
	names     []string
}

// relation is a word for one, with its predicates.
type relation struct {
	term       string
	predicates []string
}

// maxNameWords bounds the words of a name that a question is searched for.
const maxNameWords = 3

// pathOf reads the relations and the possible names of a question.
func pathOf(text string) (p path) {
	words := questionWords(text)
	plain := make([]bool, len(words))
	for i, w := range words {
		p.own = p.own || slices.Contains(ownWords, w)
		terms := lex.Terms(w)
		plain[i] = len(terms) == 0
		if len(terms) == 1 && attribute.Relations(terms[0]) != nil {
			p.relations, plain[i] = append(p.relations, relation{terms[0], attribute.Relations(terms[0])}), true
		}
	}
	for i := range words {
		for n := 1; n <= maxNameWords && i+n <= len(words) && !plain[i]; n++ {
			p.names = append(p.names, strings.Join(words[i:i+n], " "))
		}
	}
	return p
}

// reached is an entity at which the relations of the question end.
type reached struct {
	name  []termID
	words []string
	by    []string // index terms of the relations
}

// graph follows the relations of the question. Where it lists none, it takes the facts
// on the edges around the entities that it names.
func (e *Engine) graph(ctx context.Context, q Query) (f found, err error) {
	p := pathOf(q.Text)
	if len(p.relations) == 0 && len(p.names) == 0 {
		return f, nil
	}
	owners, err := e.owners(ctx, q.Scope)
	if err != nil {
		return f, err
	}
	var ends []string
	at := cmp.Or(q.ValidAt, q.Now)
	for _, owner := range owners {
		entities, err := e.store.Entities(ctx, owner, p.names)
		if err != nil {
			return f, fmt.Errorf("entities: %w", err)
		}
		names, err := e.follow(ctx, owner, p, entities, at)
		if err != nil {
			return f, err
		}
		ends = append(ends, names...)
		if len(p.relations) == 0 && len(entities) > 0 && q.narrowsNoFacts() {
			near, err := e.around(ctx, owner, entities, at)
			if err != nil {
				return f, err
			}
			f.hits = append(f.hits, near...)
		}
	}
	if len(ends) == 0 {
		return f, nil
	}
	for _, name := range ends {
		r := reached{name: termsOf(name), words: lex.Words(name)}
		for _, relation := range p.relations {
			r.by = append(r.by, relation.term)
		}
		f.reached = append(f.reached, r)
	}
	q.Limit = graphHits
	f.hits, err = each(q, func(sel scope.Selector, t store.SearchQuery) ([]store.Hit, error) {
		t.Limit = graphHits
		return e.store.SearchText(ctx, sel, strings.Join(ends, " "), t)
	})
	for i := range f.hits {
		f.hits[i].Score = 1
	}
	return f, err
}

// narrowsNoFacts reports whether any valid fact within the scope may be an answer.
func (q Query) narrowsNoFacts() bool {
	return q.Facts && q.Filter == nil && q.Scope.Session == nil && len(q.Kinds) == 0 && q.After.IsZero() && q.Before.IsZero()
}

// owners are the fact scopes within sel, none where they are too many to walk in.
func (e *Engine) owners(ctx context.Context, sel scope.Selector) (list []scope.Scope, err error) {
	switch named := sel.User != nil && *sel.User != "" || sel.Agent != nil && *sel.Agent != ""; {
	case named && sel.User != nil && sel.Agent != nil:
		return []scope.Scope{{Project: sel.Project, User: *sel.User, Agent: *sel.Agent}}, nil
	case named:
		sel.Session = nil // an entity belongs to a fact scope
	case sel.Session == nil:
		return nil, nil
	}
	err = e.store.Scopes(ctx, sel, func(owner scope.Scope) bool {
		list = append(list, owner)
		return len(list) <= maxOwners
	})
	if len(list) > maxOwners {
		list = nil
	}
	return list, err
}

// follow returns the names at the end of the relations: in the order of the question,
// or in reverse ("the wife of my brother").
func (e *Engine) follow(ctx context.Context, owner scope.Scope, p path, named []events.Entity, at time.Time) ([]string, error) {
	if len(p.relations) == 0 {
		return nil, nil
	}
	var from []string
	for _, n := range named {
		from = append(from, n.CanonicalName)
	}
	if p.own {
		from = append(from, asker)
	}
	ends, err := e.along(ctx, owner, p.relations, from, at)
	if err != nil || len(ends) > 0 || len(p.relations) < 2 {
		return ends, err
	}
	back := slices.Clone(p.relations)
	slices.Reverse(back)
	return e.along(ctx, owner, back, from, at)
}

func (e *Engine) along(ctx context.Context, owner scope.Scope, relations []relation, from []string, at time.Time) ([]string, error) {
	for _, r := range relations {
		next := map[string]bool{}
		for _, subject := range from[:min(len(from), maxReached)] {
			for _, predicate := range r.predicates {
				facts, err := e.store.FactsByPredicate(ctx, owner, subject, predicate)
				if err != nil {
					return nil, fmt.Errorf("relations: %w", err)
				}
				for _, f := range facts {
					if name := nameIn(f.Object); holds(f, at) && name != "" && r.told(f) && !slices.Contains(lex.Terms(name), r.term) {
						next[name] = true
					}
				}
			}
		}
		if from = slices.Sorted(maps.Keys(next)); len(from) == 0 {
			break
		}
	}
	return from[:min(len(from), maxReached)], nil
}

// loose are the predicates whose facts may use any word for the relation: a son may be
// told of as a baby.
var loose = []string{"work", "has_wife", "has_husband", "has_partner", "has_children"}

// told reports whether a fact tells of the relation: has_contact does of doctors, and of
// colleagues.
func (r relation) told(f store.Fact) bool {
	terms := lex.Terms(f.Text)
	if slices.Contains(loose, f.Predicate) || slices.Contains(terms, r.term) {
		return true
	}
	return slices.ContainsFunc(lex.Synonyms(r.term), func(s lex.Synonym) bool { return slices.Contains(terms, s.Term) })
}

// nameIn is an object without the words before its first index term: "at Globex".
func nameIn(object string) string {
	fields := strings.Fields(object)
	for len(fields) > 0 && len(lex.Terms(fields[0])) == 0 {
		fields = fields[1:]
	}
	return strings.Join(fields, " ")
}

// holds reports whether a fact is valid at an instant and not archived.
func holds(f store.Fact, at time.Time) bool { return f.ArchivedAt == nil && memory.ValidAt(f.Fact, at) }

// around returns the facts on the edges up to two from entities, and then those that
// mention a neighbour: "Google" leads over "Alice works at Google" to "Alice likes
// sailing". Those beyond the user's own entity are about anything.
func (e *Engine) around(ctx context.Context, owner scope.Scope, from []events.Entity, at time.Time) ([]store.Hit, error) {
	user := memory.EntityID(owner, memory.SubjectUser, events.EntityPerson)
	var start, evidence, near []string
	for _, entity := range from {
		if entity.ID != user {
			start = append(start, entity.ID)
		}
	}
	list, err := graph.Walk(ctx, e.store, owner, start, at, graph.Limits{Depth: 2, FanOut: maxFanOut, Edges: maxEdges})
	if err != nil {
		return nil, err
	}
	for _, step := range list {
		for _, id := range []string{step.SourceID, step.TargetID} {
			if step.Depth == 1 && id != user && len(near) < maxReached && !slices.Contains(near, id) {
				near = append(near, id)
			}
		}
		if step.Depth == 1 || step.SourceID != user && step.TargetID != user {
			evidence = append(evidence, step.Evidence...)
		}
	}
	facts, err := e.store.FactsByID(ctx, owner, evidence)
	if err != nil {
		return nil, fmt.Errorf("facts of edges: %w", err)
	}
	slices.SortFunc(facts, func(a, b store.Fact) int {
		return cmp.Compare(slices.Index(evidence, a.ID), slices.Index(evidence, b.ID))
	})
	if len(near) > 0 {
		mention := store.Filter{Expr: filter.OneOf(filter.Memory, "entity_ids", near...), Now: at}
		more, err := e.store.Facts(ctx, scope.Exactly(owner), store.FactQuery{Limit: graphHits, ValidAt: at, Filter: &mention})
		if err != nil {
			return nil, fmt.Errorf("facts of neighbours: %w", err)
		}
		facts = append(facts, more...)
	}
	var hits []store.Hit
	seen := map[string]bool{}
	for i := range facts {
		if f := &facts[i]; holds(*f, at) && !seen[f.ID] {
			seen[f.ID] = true
			hits = append(hits, store.Hit{Score: nearFact, Fact: f})
		}
	}
	return hits, nil
}

// reach adds the names that the graph leg reached as synonyms of the relations that
// lead there.
func (p *pool) reach() {
	for _, r := range p.reached() {
		for _, w := range r.words {
			p.asked.subjects[w] = true
		}
		for _, id := range r.name {
			if of := slices.Index(p.asked.terms, r.by[len(r.by)-1]); of >= 0 && p.asked.index(id) < 0 && len(p.asked.forms) < maxForms {
				p.asked.forms = append(p.asked.forms, form{id, of, nameShare, nameShare * p.asked.weights[of]})
			}
		}
	}
}

func (p *pool) reached() []reached {
	for _, l := range p.legs {
		if l.name == graphLeg && l.err == nil {
			return l.reached
		}
	}
	return nil
}

// related is 1 for a text that names an entity at the end of the question's relations,
// and less for a fact that an edge reaches.
func (p *pool) related(c *candidate, terms []termID) float64 {
	for _, r := range p.reached() {
		if len(r.name) > 0 && !slices.ContainsFunc(r.name, func(id termID) bool { return !slices.Contains(terms, id) }) {
			return 1
		}
	}
	for l, leg := range p.legs {
		if leg.name == graphLeg && c.hit.Fact != nil {
			return min(nearFact, c.places[l].Score)
		}
	}
	return 0
}
