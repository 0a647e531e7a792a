package query

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/filter"
	"palimpsest/internal/memory"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/retrieval/assembly"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

func (s *Service) contextRoutes(a huma.API) {
	registerBody[api.ContextQuery](s, a, huma.Operation{
		OperationID: "context", Method: http.MethodPost, Path: "/v1/context", Tags: []string{"search"},
		Summary: "Assemble what is known for a system prompt", Description: "204 where nothing is known.",
	}, s.context)
}

type contextAnswer struct {
	Status int
	Body   *api.Context
}

// Bounds of what a block is made from.
const (
	contextHits    = 40 // of the search
	contextRules   = 50 // procedural facts
	contextProfile = 40 // facts, found or not
	contextRecent  = 20 // episodes
	contextHolds   = 10
	perEntity      = 5 // facts of one entity
	entitiesAsked  = 8
	maxBudget      = 100_000 // tokens
)

// defaultWindow is how old the episodes of a block may be.
const defaultWindow = "30d"

func (s *Service) context(ctx context.Context, in *searchInput) (*contextAnswer, error) {
	body, project, err := received[api.ContextQuery](s, in.ProjectParam, in.Unread)
	if err != nil {
		return nil, err
	}
	return s.assemble(ctx, project, body)
}

func (s *Service) assemble(ctx context.Context, project string, body api.ContextQuery) (*contextAnswer, error) {
	q, err := s.question(ctx, project, api.Search{Selector: body.Selector, Text: body.Text, Query: body.Query, Kinds: body.Kinds, Now: body.Now, Limit: contextHits})
	if err != nil {
		return nil, err
	}
	if body.Budget < 0 || body.Budget > maxBudget {
		return nil, invalid("budget", "%d is outside 1 to %d", body.Budget, maxBudget)
	}
	stale, err := s.fresh(ctx, project, body.At)
	if err != nil {
		return nil, err
	}
	narrow := narrowing{filters: body.Filters, entity: body.Entity, window: cmp.Or(body.EpisodeWindow, defaultWindow), episodes: true}
	if q.Filter, err = s.matching(ctx, q.Scope, narrow, q.Now); err != nil {
		return nil, err
	}
	results, err := s.engine.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	ageless := narrow
	ageless.window = ""
	whole, err := s.matching(ctx, q.Scope, ageless, q.Now)
	if err != nil {
		return nil, err
	}
	if whole == nil {
		whole = &store.Filter{Expr: filter.And{}, Now: q.Now}
	}
	g := gathered{Service: s, q: q, whole: whole, hits: results.Hits, firstTurn: body.FirstTurn, narrowed: len(body.Filters) > 0 || body.Entity != "" || len(body.Kinds) > 0}
	sections, err := g.sections(ctx)
	if err != nil {
		return nil, err
	}
	complexity := retrieval.ComplexityOf(q.Text)
	block := assembly.Pack(sections, cmp.Or(body.Budget, complexity.Budget()), assembly.Tokens)
	if block.Text == "" {
		return &contextAnswer{Status: http.StatusNoContent}, nil
	}
	results.Hits = slices.DeleteFunc(results.Hits, func(h retrieval.Hit) bool { return h.Fact != nil && !slices.Contains(block.IDs, h.Fact.ID) })
	s.returned(ctx, results)
	return &contextAnswer{Status: http.StatusOK, Body: &api.Context{
		Context: block.Text, Tokens: block.Tokens, IDs: block.IDs, Complexity: string(complexity), Degraded: results.Degraded, Stale: stale,
	}}, nil
}

// gathered reads what the sections of a block are made from.
type gathered struct {
	*Service
	q         retrieval.Query
	whole     *store.Filter // that of q without the window
	hits      []retrieval.Hit
	firstTurn bool
	narrowed  bool // filters, an entity or kinds narrow the facts
}

func (g *gathered) sections(ctx context.Context) ([]assembly.Section, error) {
	rules, err := g.facts(ctx, store.FactQuery{Kinds: []events.FactKind{events.FactProcedural}, Limit: contextRules})
	if err != nil {
		return nil, err
	}
	summary, err := g.summary(ctx)
	if err != nil {
		return nil, err
	}
	people, err := g.people(ctx)
	if err != nil {
		return nil, err
	}
	recent, err := g.recent(ctx)
	if err != nil {
		return nil, err
	}
	held, err := g.held(ctx)
	if err != nil {
		return nil, err
	}
	profile, err := g.profile(ctx)
	if err != nil {
		return nil, err
	}
	var facts, dated, quotes []assembly.Line
	for _, h := range g.hits {
		switch {
		case h.Episode != nil:
			quotes = append(quotes, assembly.Line{ID: h.Episode.ID, Text: quote(*h.Episode)})
		case h.Fact.Kind == events.FactProcedural:
		case h.Fact.Category == "event":
			dated = append(dated, assembly.Line{ID: h.Fact.ID, Text: day(h.Fact.EventTime) + ": " + h.Fact.Text, Order: h.Fact.EventTime.UnixMicro()})
		default:
			facts = append(facts, g.line(*h.Fact))
		}
	}
	return []assembly.Section{
		{Title: "Instructions", Lines: lines(rules, func(f store.Fact) assembly.Line { return assembly.Line{ID: f.ID, Text: f.Text} })},
		{Title: "Earlier session", Lines: summary, Share: 0.10},
		{Title: "Facts", Share: 0.36, Lines: append(facts, profile...)},
		{Title: "People and things", Share: 0.225, Lines: people},
		{Title: "When", Share: 0.225, Lines: append(dated, recent...), Sorted: true},
		{Title: "Quotes", Share: 0.09, Lines: append(quotes, held...)},
	}, nil
}

// facts lists what is known now within the scope that is asked about.
func (g *gathered) facts(ctx context.Context, q store.FactQuery) ([]store.Fact, error) {
	sel := g.q.Scope
	q.Session, sel.Session = sel.Session, nil
	if named := sel.User != nil && *sel.User != ""; named && len(q.Kinds) > 0 {
		q.Session = nil // an instruction, or a summary, of a user is of all sessions
	}
	q.ValidAt = g.q.Now
	if q.Filter == nil {
		q.Filter = g.q.Filter
	}
	return g.deps.Store.Facts(ctx, sel, q)
}

// profile lists the newest facts that the search did not find. They come last among
// the facts: an allergy matters for a trip, and shares no word with it.
func (g *gathered) profile(ctx context.Context) (out []assembly.Line, err error) {
	if g.narrowed {
		return nil, nil
	}
	list, err := g.facts(ctx, store.FactQuery{Limit: contextProfile})
	for _, f := range list {
		found := slices.ContainsFunc(g.hits, func(h retrieval.Hit) bool { return h.Fact != nil && h.Fact.ID == f.ID })
		if !found && f.Kind == events.FactSemantic && f.Category != "event" {
			out = append(out, g.line(f))
		}
	}
	return out, err
}

// summary is the newest session summary of any age, at the beginning of another session.
func (g *gathered) summary(ctx context.Context) ([]assembly.Line, error) {
	if !g.firstTurn {
		if g.q.Scope.Session == nil || *g.q.Scope.Session == "" {
			return nil, nil
		}
		said, err := g.deps.Store.Recent(ctx, g.q.Scope, store.RecentQuery{Limit: 1})
		if err != nil || len(said) > 0 {
			return nil, err
		}
	}
	list, err := g.facts(ctx, store.FactQuery{Kinds: []events.FactKind{events.FactSummary}, Limit: 1, Filter: g.whole})
	return lines(list, func(f store.Fact) assembly.Line {
		return assembly.Line{ID: f.ID, Text: day(f.EventTime) + ": " + f.Text}
	}), err
}

// people are the facts of those whom the facts that were found mention.
func (g *gathered) people(ctx context.Context) (out []assembly.Line, err error) {
	seen := map[string]bool{}
	for _, h := range g.hits {
		if h.Fact == nil {
			continue
		}
		for _, id := range h.Fact.EntityIDs {
			if seen[id] || len(seen) == entitiesAsked {
				continue
			}
			seen[id] = true
			of := &store.Filter{Expr: filter.Both(filter.OneOf(filter.Memory, "entity_ids", id), g.q.Filter.Expr), Now: g.q.Now}
			list, err := g.facts(ctx, store.FactQuery{Limit: perEntity, Filter: of})
			if err != nil {
				return nil, err
			}
			for _, f := range list {
				out = append(out, g.line(f))
			}
		}
	}
	return out, nil
}

// recent is what was said last, within the window and the filters.
func (g *gathered) recent(ctx context.Context) ([]assembly.Line, error) {
	said, err := g.deps.Store.Recent(ctx, g.q.Scope, store.RecentQuery{Limit: contextRecent, Filter: g.q.Filter, Before: g.q.Now.Add(time.Microsecond)})
	return lines(said, func(e memory.Episode) assembly.Line {
		return assembly.Line{ID: e.ID, Text: quote(e), Order: e.Timestamp.UnixMicro()}
	}), err
}

// held are candidates that wait for support; sensitive ones are left out.
func (g *gathered) held(ctx context.Context) (out []assembly.Line, err error) {
	if g.narrowed || g.q.Scope.Session != nil {
		return nil, nil // a candidate has no fields of a fact, and no session
	}
	list, err := g.deps.Store.ListHolds(ctx, g.q.Scope, store.HoldQuery{Limit: contextHolds})
	for _, h := range list {
		if h.Candidate.Sensitivity == "" || h.Candidate.Sensitivity == events.SensitivityNone {
			out = append(out, assembly.Line{ID: h.ID, Text: "(unconfirmed) " + h.Candidate.Text})
		}
	}
	return out, err
}

// line is a fact as [category] subject PREDICATE object (confidence, when): "evidence".
func (g *gathered) line(f store.Fact) assembly.Line {
	var b strings.Builder
	if f.Category != "" {
		b.WriteString("[" + f.Category + "] ")
	}
	if f.Subject != "" && f.Predicate != "" && f.Object != "" {
		b.WriteString(f.Subject + " " + f.Predicate + " " + f.Object)
	} else {
		b.WriteString(f.Text)
	}
	confidence := memory.Confidence(f.Strength, f.DecayRate, f.LastAccessed, g.q.Now)
	_, _ = fmt.Fprintf(&b, " (%.2f, %s)", confidence, day(f.EventTime))
	if f.EvidenceQuote != "" && f.EvidenceQuote != f.Text {
		b.WriteString(`: "` + f.EvidenceQuote + `"`)
	}
	return assembly.Line{ID: f.ID, Text: b.String()}
}

// quote is what was said, by whom and when.
func quote(e memory.Episode) string {
	who, _ := e.Metadata["speaker"].(string)
	return e.Timestamp.Format("2006-01-02 15:04") + " " + cmp.Or(who, string(e.Role)) + `: "` + e.Content + `"`
}

func day(at time.Time) string { return at.Format(time.DateOnly) }

func lines[T any](list []T, line func(T) assembly.Line) []assembly.Line {
	out := make([]assembly.Line, len(list))
	for i := range list {
		out[i] = line(list[i])
	}
	return out
}
