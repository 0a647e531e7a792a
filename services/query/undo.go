package query

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/errgroup"

	"palimpsest/internal/memory"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func (s *Service) undoRoutes(a huma.API) {
	registerBody[api.Undo](s, a, huma.Operation{
		OperationID: "undo", Method: http.MethodPost, Path: "/v1/undo", Tags: []string{"facts"},
		Summary: "Take back what one request, message, run of a rule or source changed",
	}, s.undo)
}

type undoInput struct {
	ProjectParam
	KeyHeader
	Unread
}

// undo takes chosen deltas back by deltas of its own, which have the request id of
// this request and can be undone by it.
func (s *Service) undo(ctx context.Context, in *undoInput) (*written, error) {
	body, project, err := received[api.Undo](s, in.ProjectParam, in.Unread)
	if err != nil {
		return nil, err
	}
	c, err := s.criteria(ctx, project, body)
	if err != nil {
		return nil, err
	}
	if body.DryRun {
		plan, err := s.undoing(ctx, c)
		if err != nil {
			return nil, err
		}
		return &written{Status: http.StatusOK, Body: &api.Written{Status: statusDone, Undo: plan.view()}}, nil
	}
	return s.once(ctx, project, "POST /v1/undo", in.Key, in.RawBody, func(a attempt) (*written, error) {
		plan, err := s.undoing(ctx, c)
		if err != nil {
			return nil, err
		}
		return s.takeBack(ctx, a, plan)
	})
}

// takeBack runs the commands of a plan: those of one fact scope one after the other.
// Their ids begin with that of the request and follow from their steps, so that a
// repeated request runs those that are left.
func (s *Service) takeBack(ctx context.Context, a attempt, plan undoPlan) (*written, error) {
	answers := make([][]*written, len(plan.scopes))
	deadline := time.Now().Add(s.config.Wait)
	var group errgroup.Group
	group.SetLimit(deletesAtOnce)
	for i, owner := range plan.scopes {
		group.Go(func() error {
			for steps := range slices.Chunk(plan.steps[owner], events.MaxUndoSteps) {
				text, err := json.Marshal(steps)
				if err != nil {
					return err
				}
				one := attempt{correlation: derived(a.correlation, owner.Tokens(), string(text)), again: a.again, deadline: deadline}
				answer, err := s.command(ctx, one, events.CommandRequested{
					Header:     events.Header{Scope: owner},
					CommandRef: events.CommandRef{RequestID: one.correlation, Op: events.OpUndo},
					Undo:       steps,
				})
				if err != nil {
					return err
				}
				answers[i] = append(answers[i], answer)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := &written{Status: http.StatusOK, Body: &api.Written{CorrelationID: a.correlation, Status: statusDone, Undo: plan.view()}}
	for _, answer := range slices.Concat(answers...) {
		if answer.pending {
			out.Status, out.Body.Status, out.pending = http.StatusAccepted, statusAccepted, true
			out.Body.Results, out.Body.At = nil, answer.Body.At
			return out, nil
		}
		out.Body.Results = append(out.Body.Results, answer.Body.Results...)
		out.Body.At = answer.Body.At
	}
	if out.Body.At != "" {
		return out, nil
	}
	state, err := s.deps.Store.State(ctx, plan.about[0])
	out.Body.At = seal(token{Scope: plan.about[0].Tokens(), Revision: state.Revision})
	return out, err
}

// undoPlan is what an undo does in each fact scope.
type undoPlan struct {
	about     []scope.Scope // those that have chosen deltas
	scopes    []scope.Scope // those of them in which something is to do
	steps     map[scope.Scope][]events.UndoStep
	conflicts map[scope.Scope][]undoConflict
	marks     bool // it takes back marks of a quarantine
	// request is the correlation id of a quarantine that marked the messages before.
	request string
}

// undoConflict is a fact that is left alone, and why.
type undoConflict struct {
	memory.UndoConflict
	why string
}

// shownUndo bounds the changes and the conflicts that an answer lists.
const shownUndo = 1000

func (p undoPlan) view() *api.UndoPlan {
	out := &api.UndoPlan{Changes: []api.UndoChange{}, Conflicts: []api.UndoConflict{}}
	for _, owner := range p.about {
		for _, step := range p.steps[owner] {
			out.Changes = append(out.Changes, viewStep(owner, step))
		}
		for _, c := range p.conflicts[owner] {
			out.Conflicts = append(out.Conflicts, viewUndoConflict(owner, c))
		}
	}
	if n := len(out.Changes) - shownUndo; n > 0 {
		out.Changes, out.Omitted = out.Changes[:shownUndo], n
	}
	if n := len(out.Conflicts) - shownUndo; n > 0 {
		out.Conflicts = out.Conflicts[:shownUndo]
		out.Omitted += n
	}
	return out
}

func viewStep(owner scope.Scope, step events.UndoStep) api.UndoChange {
	out := api.UndoChange{Scope: api.ScopeOf(owner), Event: string(events.ChangeDelete), ID: step.FactID, Revision: step.Revision}
	switch {
	case step.Hold != nil:
		out.Event, out.ID, out.Memory = "HOLD", step.Hold.ID, step.Hold.Candidate.Text
	case step.HoldID != "":
		out.Event, out.ID = "DISMISS", step.HoldID
	case step.Restore != nil && step.Restore.ValidUntil == nil:
		out.Event, out.Memory = string(events.ChangeUpdate), step.Restore.Text
	case step.Restore != nil:
		out.Event = string(events.ChangeUpdate)
	}
	return out
}

func viewUndoConflict(owner scope.Scope, c undoConflict) api.UndoConflict {
	out := api.UndoConflict{Scope: api.ScopeOf(owner), ID: c.Fact.ID, Memory: c.Fact.Text, Why: c.why}
	for _, t := range c.Later {
		out.Later = append(out.Later, api.UndoTouch{
			DeltaID: t.DeltaID, Kind: string(t.Kind), Reason: string(t.Reason), RequestID: t.RequestID, Sources: t.Sources, At: t.At,
		})
	}
	return out
}

// derivedDigits is how many hex digits of a hash follow the id of a request in the id of
// one of its commands.
const derivedDigits = 16

// derived is the id of a command of a request, which parts tell from its others.
func derived(request string, parts ...string) string {
	return request + "-" + events.HashID(parts...)[:derivedDigits]
}

// belongsTo reports whether a command or an effect has the id of a request, or one that
// was [derived] from it. The beginning of an id is no id.
func belongsTo(id, request string) bool {
	hash, ok := strings.CutPrefix(id, request)
	return ok && (hash == "" || len(hash) == 1+derivedDigits && hash[0] == '-' && strings.Trim(hash[1:], "0123456789abcdef") == "")
}
