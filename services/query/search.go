package query

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/lex"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func (s *Service) searchRoutes(a huma.API) {
	registerBody[api.Search](s, a, huma.Operation{
		OperationID: "search", Method: http.MethodPost, Path: "/v1/search", Tags: []string{"search"},
		Summary: "Find facts and episodes by text",
	}, s.search)
}

type searchInput struct {
	ProjectParam
	Unread
}

type found struct{ Body api.Found }

func (s *Service) search(ctx context.Context, in *searchInput) (*found, error) {
	body, project, err := received[api.Search](s, in.ProjectParam, in.Unread)
	if err != nil {
		return nil, err
	}
	q, err := s.question(ctx, project, body)
	if err != nil {
		return nil, err
	}
	stale, err := s.fresh(ctx, project, body.At)
	if err != nil {
		return nil, err
	}
	n := narrowing{filters: body.Filters, entity: body.Entity, window: body.EpisodeWindow, episodes: q.Episodes}
	if q.Filter, err = s.matching(ctx, q.Scope, n, q.Now); err != nil {
		return nil, err
	}
	if body.ValidAt != nil && q.Facts {
		q.Earlier = func(ctx context.Context) ([]store.Fact, error) { return s.earlier(ctx, q) }
	}
	results, err := s.engine.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	s.returned(ctx, results)
	out := s.viewFound(results, body.Explain)
	out.Stale = stale
	s.findIncognito(q, body.Cursor == "", &out)
	return &found{out}, nil
}

func (s *Service) question(ctx context.Context, project string, body api.Search) (retrieval.Query, error) {
	q := retrieval.Query{Scope: body.Selector.In(project), Text: body.Text, Limit: body.Limit, Explain: body.Explain}
	switch {
	case q.Text == "":
		q.Text = body.Query
	case body.Query != "" && body.Query != body.Text:
		return q, invalid("query", "is another name for text, and differs from it; leave one out")
	}
	if q.Text == "" {
		return q, invalid("text", "is required")
	}
	if err := q.Scope.Validate(); err != nil {
		return q, err
	}
	if err := checkWidth(q.Scope); err != nil {
		return q, err
	}
	var err error
	if q.Scope, err = narrowed(ctx, q.Scope); err != nil {
		return q, err
	}
	if _, err := limit(body.Limit, 1); err != nil {
		return q, err
	}
	for _, t := range body.Types {
		if t != "fact" && t != "episode" {
			return q, invalid("types", "%q is neither fact nor episode", lex.Clip(t))
		}
	}
	if q.MinScore = s.config.Search.MinScore; body.MinScore != nil {
		if q.MinScore = *body.MinScore; q.MinScore < 0 || q.MinScore > 1 {
			return q, invalid("min_score", "must be from 0 to 1")
		}
	}
	q.Facts = len(body.Types) == 0 || slices.Contains(body.Types, "fact")
	q.Episodes = len(body.Types) == 0 || slices.Contains(body.Types, "episode")
	for _, k := range body.Kinds {
		if !events.FactKind(k).Valid() {
			return q, invalid("kinds", "%q is not a kind of fact", lex.Clip(k))
		}
		q.Kinds = append(q.Kinds, events.FactKind(k))
	}
	q.Now = at(body.Now, s.deps.Now())
	if q.After, err = bound("after", string(body.After), q.Now); err != nil {
		return q, err
	}
	if q.Before, err = bound("before", string(body.Before), q.Now); err != nil {
		return q, err
	}
	q.ValidAt = at(body.ValidAt, q.Now)
	q.Page, err = open[retrieval.Page]("cursor", body.Cursor)
	return q, err
}

// earlier lists what a question about the past asks for of versions that were
// succeeded since. The deadline of a channel bounds it.
func (s *Service) earlier(ctx context.Context, q retrieval.Query) (all []store.Fact, err error) {
	sel := q.Scope
	sel.Session = nil
	asked := store.FactQuery{Session: q.Scope.Session, Kinds: q.Kinds, ValidAt: q.ValidAt, Earlier: true, Filter: q.Filter, Limit: maxLimit}
	for {
		page, err := s.deps.Store.Facts(ctx, sel, asked)
		if all = append(all, page...); err != nil || len(page) < maxLimit {
			return all, err
		}
		last := page[len(page)-1]
		asked.Cursor = &store.FactCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}

func at(i *api.Instant, otherwise time.Time) time.Time {
	if i == nil {
		return otherwise
	}
	return i.Time
}

func (s *Service) viewFound(results retrieval.Results, explain bool) api.Found {
	out := api.Found{Results: []api.Hit{}, Complexity: string(results.Complexity), Degraded: results.Degraded}
	if results.Next != nil {
		out.Next = seal(results.Next)
	}
	now := s.deps.Now()
	for _, h := range results.Hits {
		hit := api.Hit{Score: h.Score, LentBy: h.LentBy}
		if h.Fact != nil {
			f := viewFact(*h.Fact, now)
			hit.Type, hit.ID, hit.Text, hit.Fact = "fact", f.ID, f.Text, &f
		} else {
			e := viewEpisode(*h.Episode)
			hit.Type, hit.ID, hit.Text, hit.Episode = "episode", e.ID, e.Content, &e
		}
		if explain {
			hit.Features = h.Features
			hit.Channels = map[string]api.Channel{}
			for name, p := range h.Channels {
				hit.Channels[name] = api.Channel{Rank: p.Rank, Score: p.Score}
			}
		}
		out.Results = append(out.Results, hit)
	}
	return out
}

// accessPatience bounds what reinforcement may cost a search.
const accessPatience = 250 * time.Millisecond

// returned publishes one access event per fact scope for what a search gave
// out. It must not fail the search, nor hold it up: reinforcement may be lost.
func (s *Service) returned(ctx context.Context, results retrieval.Results) {
	ctx, cancel := context.WithTimeout(ctx, accessPatience)
	defer cancel()
	ids := map[scope.Scope][]string{}
	for _, h := range results.Hits {
		if h.Fact != nil {
			ids[h.Fact.Scope] = append(ids[h.Fact.Scope], h.Fact.ID)
		}
	}
	now := s.deps.Now()
	for owner, facts := range ids {
		// An access of an earlier incarnation counts for nothing, and facts that are
		// read would be pruned.
		state, err := s.deps.Store.State(ctx, owner)
		if err == nil {
			_, err = s.deps.Publisher.Publish(ctx, events.Meta{Source: source},
				events.FactReturned{Header: events.Header{Scope: owner, Incarnation: state.Incarnation}, FactIDs: facts, At: now})
		}
		if err != nil {
			s.deps.Logger.WarnContext(ctx, "query: access event lost", "error", err)
		}
	}
}
