package query

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"palimpsest/internal/auth"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// command publishes a command and waits for its outcome; past the deadline the
// answer is 202 and the work goes on.
func (s *Service) command(ctx context.Context, a attempt, c events.CommandRequested) (*written, error) {
	if a.again {
		outcomes, err := s.deps.Store.Outcomes(ctx, c.Scope.Project, a.correlation)
		if err != nil {
			return nil, err
		}
		if settled(outcomes) {
			return s.commanded(ctx, c, outcomes)
		}
	}
	state, err := s.deps.Store.State(ctx, c.Scope)
	if err != nil {
		return nil, err
	}
	c.Incarnation, c.Actor, c.At = state.Incarnation, auth.Of(ctx).Name(), s.deps.Now()
	meta := events.Meta{ID: events.HashID(append([]string{string(c.Kind())}, c.Identity()...)...), Source: source, CorrelationID: a.correlation}
	if err := legible(meta, c); err != nil {
		return nil, err
	}
	w, err := s.listen(ctx, c.Scope.Project, a.correlation)
	if err != nil {
		return nil, s.unpublished(ctx, "", err)
	}
	defer w.stop()
	if _, err := s.deps.Publisher.Publish(ctx, meta, c); err != nil {
		return nil, s.unpublished(ctx, "", err)
	}
	most := s.config.Wait
	if !a.deadline.IsZero() {
		most = time.Until(a.deadline)
	}
	outcomes, whole := w.wait(ctx, most, settled)
	if !whole {
		at := seal(token{Scope: c.Scope.Tokens(), Command: a.correlation})
		answer := &api.Written{CorrelationID: a.correlation, Status: statusAccepted, At: at}
		return &written{Status: http.StatusAccepted, Body: answer, pending: true}, nil
	}
	return s.commanded(ctx, c, outcomes)
}

// legible refuses a command that its reader would have to bury, such as one
// that nests too deep inside its envelope.
func legible(meta events.Meta, c events.CommandRequested) error {
	_, _, body, err := events.Encode(meta, c)
	if err != nil {
		return err
	}
	err = events.Unmarshal(body, new(events.CommandRequested))
	var refused *events.FieldError
	if errors.As(err, &refused) {
		return &events.FieldError{Field: strings.TrimPrefix(refused.Field, "candidate."), Code: refused.Code, Reason: refused.Reason}
	}
	return err
}

// commanded is the answer to a command that is settled.
func (s *Service) commanded(ctx context.Context, c events.CommandRequested, outcomes []events.Outcome) (*written, error) {
	last := outcomes[len(outcomes)-1]
	answer := &api.Written{
		CorrelationID: c.RequestID, Status: statusDone, Results: viewResults(outcomes),
		At: seal(token{Scope: c.Scope.Tokens(), Revision: last.Revision}),
	}
	if c.Op == events.OpDeleteScope {
		answer.Closed = &last.Closed
	}
	id := c.FactID
	if len(answer.Results) > 0 {
		id = either(id, answer.Results[0].ID)
	}
	if id != "" {
		f, err := s.deps.Store.Fact(ctx, scope.Selector{Project: c.Scope.Project}, id)
		if err == nil {
			view := viewFact(f, s.deps.Now())
			answer.Fact = &view
		}
	}
	if last.Skipped != "" {
		return nil, refused(last.Skipped)
	}
	if last.Conflict != "" {
		return nil, conflict(c, last.Conflict, answer.Fact)
	}
	status := http.StatusOK
	if c.Op == events.OpRemember && len(answer.Results) > 0 && answer.Results[0].Event == string(events.ChangeAdd) {
		status = http.StatusCreated
	}
	return &written{Status: status, Body: answer}, nil
}

// refused answers a caller whose command was buried: it is impossible, or all
// attempts failed.
func refused(why string) *api.Problem {
	code, reason, _ := strings.Cut(why, ": ")
	if code == events.CodePoison {
		return api.NewProblem(http.StatusInternalServerError, api.CodeInternal, "", "the command was given up and is in the dead letters: %s", reason)
	}
	return fieldProblem("", &events.FieldError{Code: code, Reason: reason})
}

// conflict tells a caller what stands where another revision was expected.
func conflict(c events.CommandRequested, detail string, current *api.Fact) *api.Problem {
	field := "id"
	if len(c.IfMatch) > 0 {
		field = "If-Match"
	}
	p := api.NewProblem(http.StatusConflict, api.CodeFactConflict, field, "%s", detail)
	p.Current = current
	return p
}
