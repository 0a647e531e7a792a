package query

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

func (s *Service) writeRoutes(a huma.API) {
	register(s, a, huma.Operation{
		OperationID: "get-write", Method: http.MethodGet, Path: "/v1/writes/{at}", Tags: []string{"episodes"},
		Summary: "Read what a write has come to",
	}, s.getWrite)
}

type getWriteInput struct {
	ProjectParam
	At string `path:"at" doc:"Read-your-writes token of the write."`
}

type writeState struct{ Body api.Written }

// getWrite answers done once the rules that run on every episode have passed the
// last message of the write.
func (s *Service) getWrite(ctx context.Context, in *getWriteInput) (*writeState, error) {
	project, err := s.project(in.ProjectParam)
	if err != nil {
		return nil, err
	}
	t, owner, err := readToken(project, in.At)
	if err != nil {
		return nil, err
	}
	out, err := s.cameOf(ctx, owner, *t)
	if err != nil {
		return nil, err
	}
	out.At = in.At
	return &writeState{*out}, nil
}

func (s *Service) cameOf(ctx context.Context, owner scope.Scope, t token) (*api.Written, error) {
	out := &api.Written{Status: statusAccepted}
	if t.Command != "" {
		outcomes, err := s.deps.Store.Outcomes(ctx, owner.Project, t.Command)
		if err == nil && settled(outcomes) {
			out.CorrelationID, out.Results, out.Warnings, out.Status = t.Command, viewResults(outcomes), skips(outcomes), statusDone
		}
		return out, err
	}
	// The state is read first: outcomes become visible together with it.
	state, err := s.deps.Store.State(ctx, owner.Fact())
	if err != nil {
		return nil, err
	}
	if t.Episode == "" {
		if state.Revision >= t.Revision && (t.Rule == "" || state.Watermarks[t.Rule] >= t.To) {
			out.Status = statusDone
		}
		return out, nil
	}
	e, err := s.deps.Store.Episode(ctx, owner, t.Source, t.Episode)
	if errors.Is(err, store.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	outcomes, err := s.deps.Store.Outcomes(ctx, owner.Project, e.CorrelationID)
	if err != nil {
		return nil, err
	}
	out.CorrelationID, out.Results, out.Warnings, out.Status = e.CorrelationID, viewResults(outcomes), skips(outcomes), statusDone
	for rule := range s.answering() {
		if state.Watermarks[rule] < e.Ordinal {
			out.Status = statusAccepted
		}
	}
	return out, nil
}
