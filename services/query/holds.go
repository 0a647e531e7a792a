package query

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/auth"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func (s *Service) holdRoutes(a huma.API) {
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{"holds"}}
	}
	register(s, a, op("list-holds", http.MethodGet, "/v1/holds", "List what waits before it changes anything, oldest first"), s.listHolds)
	register(s, a, op("release-hold", http.MethodPost, "/v1/holds/{id}/release", "Decide on it now"), s.releaseHold)
	register(s, a, op("dismiss-hold", http.MethodPost, "/v1/holds/{id}/dismiss", "Give it up"), s.dismissHold)
}

type listHoldsInput struct {
	SelectorParams
	Fact   string `query:"fact" doc:"Only what would change this fact."`
	Limit  int    `query:"limit" doc:"1 to 1000; 100 unless given."`
	Cursor string `query:"cursor"`
}

type holdPage struct{ Body api.HoldPage }

func (s *Service) listHolds(ctx context.Context, in *listHoldsInput) (*holdPage, error) {
	sel, err := s.factSelector(in.SelectorParams)
	if err != nil {
		return nil, err
	}
	n, err := limit(in.Limit, 100)
	if err != nil {
		return nil, err
	}
	q := store.HoldQuery{FactID: in.Fact, Limit: oneMore(n)}
	if q.Cursor, err = open[store.HoldCursor]("cursor", in.Cursor); err != nil {
		return nil, err
	}
	holds, err := s.deps.Store.ListHolds(ctx, sel, q)
	if err != nil {
		return nil, err
	}
	holds, more := page(holds, n)
	out := api.HoldPage{Holds: []api.Hold{}}
	for _, h := range holds {
		out.Holds = append(out.Holds, viewHold(h))
	}
	if more {
		out.Next = seal(store.HoldCursorOf(holds[n-1]))
	}
	return &holdPage{out}, nil
}

type releaseInput struct {
	ProjectParam
	KeyHeader
	ID string `path:"id" doc:"Identifier of what is held, or its last 8 hex digits."`
}

func (s *Service) releaseHold(ctx context.Context, in *releaseInput) (*written, error) {
	return s.onHold(ctx, events.OpRelease, in)
}

func (s *Service) dismissHold(ctx context.Context, in *releaseInput) (*written, error) {
	return s.onHold(ctx, events.OpDismiss, in)
}

// onHold runs a command. Asked again after it was carried out, it finds nothing that
// is held, and the earlier answer by the key.
func (s *Service) onHold(ctx context.Context, do events.CommandOp, in *releaseInput) (*written, error) {
	project, err := s.project(in.ProjectParam)
	if err != nil {
		return nil, err
	}
	return s.once(ctx, project, string(do)+" "+in.ID, in.Key, nil, func(a attempt) (*written, error) {
		id, err := s.wholeHoldID(ctx, project, in.ID)
		if err != nil {
			return nil, err
		}
		held, err := s.deps.Store.ListHolds(ctx, scope.Selector{Project: project}, store.HoldQuery{ID: id, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(held) == 0 {
			return nil, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "id", "nothing of that id is held")
		}
		if err := mayEnd(ctx, held[0].Hold); err != nil {
			return nil, err
		}
		return s.command(ctx, a, events.CommandRequested{
			Header:     events.Header{Scope: held[0].Scope},
			CommandRef: events.CommandRef{RequestID: a.correlation, Op: do},
			HoldID:     id,
		})
	})
}

// mayEnd refuses to take the mark of a quarantine out of the buffer, which would end the
// quarantine for one user. Only operators take out a candidate that a quarantine holds.
func mayEnd(ctx context.Context, h events.Hold) error {
	switch {
	case h.Distrust != nil:
		return invalid("id", "is the mark of a quarantine: end it by POST /v1/quarantine/{id}/release, with the correlation_id of its request")
	case h.Why == events.WhyQuarantined:
		if p := auth.Allow(ctx, roles["POST /v1/quarantine"]); p != nil {
			return p
		}
	}
	return nil
}

func viewHold(h store.Hold) api.Hold {
	c := h.Candidate
	since := h.Since
	if since.IsZero() {
		since = h.HeldAt
	}
	return api.Hold{
		Scope: api.ScopeOf(h.Scope), ID: h.ID, Why: h.Why, FactID: h.FactID, Text: c.Text, Subject: c.Subject,
		Predicate: c.Predicate, Object: c.Object, EventTime: c.EventTime, Sources: c.SourceEpisodeIDs, Rule: h.Rule,
		Count: max(h.Count, 1), Since: since, HeldAt: h.HeldAt, Due: h.Due,
	}
}
