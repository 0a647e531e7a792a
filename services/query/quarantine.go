package query

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/filter"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func (s *Service) quarantineRoutes(a huma.API) {
	op := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodPost, Path: path, Summary: summary, Tags: []string{"facts"}}
	}
	registerBody[api.Quarantine](s, a, op("quarantine", "/v1/quarantine", "Withdraw the facts that rest on untrusted messages alone, and make no more of them"), s.quarantine)
	register(s, a, op("release-quarantine", "/v1/quarantine/{id}/release", "Trust the messages of a quarantine again, and bring their facts back"), s.trust)
}

type quarantineInput struct {
	ProjectParam
	KeyHeader
	Unread
}

// quarantine puts a mark into the held buffer of each fact scope that has such
// messages, and then undoes the deltas that rest on them alone. Both have the request
// id of this request, so that its undo brings back both. Where all the marks are of an
// earlier request, which died before its undo, both have the id of that one.
func (s *Service) quarantine(ctx context.Context, in *quarantineInput) (*written, error) {
	body, project, err := received[api.Quarantine](s, in.ProjectParam, in.Unread)
	if err != nil {
		return nil, err
	}
	named := 0
	for _, name := range []string{body.Episode, body.Session, body.SourceNode} {
		if name != "" {
			named++
		}
	}
	if named != 1 {
		return nil, invalid("session", "name an episode, a session or a source_node")
	}
	c, err := s.criteria(ctx, project, api.Undo{
		User: body.User, Agent: body.Agent, Episode: body.Episode, Session: body.Session, SourceNode: body.SourceNode,
	})
	if err != nil {
		return nil, err
	}
	c.alone = true
	out, err := s.once(ctx, project, "POST /v1/quarantine", in.Key, in.RawBody, func(a attempt) (*written, error) {
		s.quarantines.Add(1)
		defer s.quarantines.Add(-1)
		marks, err := s.marks(ctx, a, c)
		if err != nil {
			return nil, err
		}
		return s.distrust(ctx, a, c, marks)
	})
	if err == nil && out.pending || err != nil && !refuses(err) {
		select {
		case s.unfinished <- struct{}{}:
		default: // Resume has not begun to look since another
		}
	}
	return out, err
}

// distrust carries out the marks, and then undoes what rests on the messages alone.
func (s *Service) distrust(ctx context.Context, a attempt, c criteria, marks undoPlan) (*written, error) {
	var marked *written
	var err error
	switch {
	case len(marks.scopes) == 0 && marks.request != "":
		a = attempt{correlation: marks.request, again: true}
	case len(marks.scopes) > 0:
		if marked, err = s.takeBack(ctx, a, marks); err != nil || marked.pending {
			return marked, err
		}
	}
	plan, err := s.undoing(ctx, c)
	var problem *api.Problem
	none := errors.As(err, &problem) && problem.Code == api.CodeNotFound
	switch {
	case marked == nil && (none || err == nil && len(plan.scopes) == 0):
		return nil, api.NewProblem(http.StatusConflict, api.CodeFactConflict, "", "these messages are in quarantine already: the first request's correlation_id releases them: %s", marks.request)
	case none:
		return marked, nil // no fact was made of the messages
	case err != nil:
		return nil, err
	}
	out, err := s.takeBack(ctx, a, plan)
	if err == nil && !out.pending && marked != nil {
		out.Body.Undo.Changes = append(marked.Body.Undo.Changes, out.Body.Undo.Changes...)
	}
	return out, err
}

// marks are the steps that mark the messages in each fact scope that has any. A mark of
// an earlier request stays as it is, so that the release of that one takes it back.
func (s *Service) marks(ctx context.Context, a attempt, c criteria) (undoPlan, error) {
	plan := undoPlan{steps: map[scope.Scope][]events.UndoStep{}}
	seen := c.episodes
	if c.Episode != "" {
		var err error
		if seen, err = s.episodesOf(ctx, c); err != nil {
			return plan, err
		}
	}
	if len(seen) == 0 {
		return plan, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "", "there are no such messages")
	}
	whose := events.Distrust{Episode: c.Episode, Session: c.Session, SourceNode: c.SourceNode, Request: a.correlation, Within: &events.Within{User: c.User, Agent: c.Agent}}
	id := markPrefix + events.HashID(whose.Episode, whose.Session, whose.SourceNode)[:16]
	now := s.deps.Now()
	for key := range seen {
		if plan.steps[key.owner] != nil {
			continue
		}
		held, err := s.deps.Store.Holds(ctx, key.owner)
		if err != nil {
			return plan, err
		}
		if i := slices.IndexFunc(held, func(h events.Hold) bool { return h.ID == id }); i >= 0 && !a.again {
			if there := held[i].Distrust; there != nil && (plan.request == "" || there.Request == a.correlation) {
				plan.request = there.Request
			}
			continue
		}
		plan.steps[key.owner] = []events.UndoStep{{Hold: &events.Hold{
			ID: id, HeldAt: now, Since: now, Count: 1, Why: events.WhyQuarantine, Distrust: &whose,
			Candidate: events.Candidate{ID: id, Kind: events.FactSemantic, Text: "no fact is made of " + c.Episode + c.Session + c.SourceNode, EventTime: now},
		}}}
		plan.about = append(plan.about, key.owner)
	}
	slices.SortFunc(plan.about, func(a, b scope.Scope) int { return strings.Compare(a.Key(), b.Key()) })
	plan.scopes = plan.about
	return plan, nil
}

// markPrefix begins the ids of marks.
const markPrefix = "quarantine-"

type trustInput struct {
	ProjectParam
	KeyHeader
	ID string `path:"id" doc:"The correlation_id of the answer to POST /v1/quarantine."`
}

// trust undoes a quarantine, and releases the candidates that it held.
func (s *Service) trust(ctx context.Context, in *trustInput) (*written, error) {
	project, err := s.project(in.ProjectParam)
	if err != nil {
		return nil, err
	}
	s.quarantines.Add(1)
	defer s.quarantines.Add(-1)
	return s.once(ctx, project, "POST /v1/quarantine/release "+in.ID, in.Key, nil, func(a attempt) (*written, error) {
		c, err := s.criteria(ctx, project, api.Undo{Request: in.ID})
		if err != nil {
			return nil, err
		}
		plan, err := s.undoing(ctx, c)
		if err != nil {
			return nil, err
		}
		if !plan.marks { // an undo of what the request did is not meant
			return nil, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "id", "no quarantine has that correlation_id")
		}
		out, err := s.takeBack(ctx, a, plan)
		if err != nil || out.pending {
			return out, err
		}
		return out, s.releaseQuarantined(ctx, a, plan.about)
	})
}

// releaseQuarantined decides on the candidates of fact scopes that no mark keeps back
// any longer.
func (s *Service) releaseQuarantined(ctx context.Context, a attempt, owners []scope.Scope) error {
	for _, owner := range owners {
		held, err := s.deps.Store.Holds(ctx, owner)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(held, func(h events.Hold) bool { return h.Distrust != nil }) {
			continue // another quarantine; its release brings them back
		}
		for _, h := range held {
			if h.Why != events.WhyQuarantined {
				continue
			}
			one := attempt{correlation: derived(a.correlation, h.ID), again: a.again}
			if _, err := s.command(ctx, one, events.CommandRequested{
				Header:     events.Header{Scope: owner},
				CommandRef: events.CommandRef{RequestID: one.correlation, Op: events.OpRelease},
				HoldID:     h.ID,
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// filterOf is the filter of the messages that criteria name, beside their session.
func (c criteria) filterOf() filter.And {
	var all filter.And
	if c.SourceNode != "" {
		all = append(all, filter.OneOf(filter.Memory, "source_node", c.SourceNode))
	}
	if c.Episode != "" {
		all = append(all, filter.OneOf(filter.Memory, "id", c.Episode))
	}
	return all
}

// of sets the filter of a read of messages.
func (c criteria) of(q store.RecentQuery, s *Service) store.RecentQuery {
	if all := c.filterOf(); len(all) > 0 {
		q.Filter = &store.Filter{Expr: all, Now: s.deps.Now()}
	}
	return q
}
