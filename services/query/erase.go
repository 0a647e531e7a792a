package query

import (
	"context"
	"errors"
	"net/http"

	"palimpsest/internal/auth"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// Erasures erases users from every place.
type Erasures interface {
	// Ask makes erasing a user a durable job and returns its id. The process stops
	// its services, erases, and starts them again. A key that is not empty makes one job
	// however often it is asked with; asked with for another user, the error wraps
	// [store.ErrMismatch].
	Ask(ctx context.Context, project, user, key string) (id string, err error)
	// AskAll does so for several users of a project, and returns the ids in their order.
	AskAll(ctx context.Context, project string, users []string, key string) (ids []string, err error)
	// Get returns an erasure, or [ErrNoErasure].
	Get(ctx context.Context, id string) (api.Receipt, error)
}

// ErrNoErasure: there is no erasure of that id.
var ErrNoErasure = errors.New("query: no such erasure")

// erase asks for the erasure of the user that sel names, and of nothing else.
func (s *Service) erase(ctx context.Context, sel scope.Selector, key string) (*written, error) {
	if p := auth.Allow(ctx, auth.Admin); p != nil {
		return nil, p
	}
	switch {
	case s.deps.Erasures == nil:
		return nil, api.NewProblem(http.StatusNotImplemented, api.CodeNotImplemented, "erase",
			"erasing works where one process runs every service; stop the services and run \"palimpsest erase --data\"; nothing was changed")
	case deref(sel.User) == "":
		return nil, invalid("user", "name the user to erase")
	case sel.Agent != nil || sel.Session != nil:
		return nil, invalid("erase", "erases a whole user: leave agent and session out")
	}
	id, err := s.deps.Erasures.Ask(ctx, sel.Project, *sel.User, key)
	if err != nil {
		return nil, err
	}
	return &written{Status: http.StatusAccepted, Body: &api.Written{CorrelationID: id, Status: statusAccepted}, pending: true}, nil
}

type erasureInput struct {
	ProjectParam
	ID string `path:"id" doc:"As the answer to DELETE /v1/scopes names it."`
}

type erasure struct{ Body api.Erasure }

func (s *Service) erasure(ctx context.Context, in *erasureInput) (*erasure, error) {
	project, err := s.project(in.ProjectParam)
	if err != nil {
		return nil, err
	}
	r, err := api.Receipt{}, ErrNoErasure
	if s.deps.Erasures != nil {
		r, err = s.deps.Erasures.Get(ctx, in.ID)
	}
	if err == nil && r.Project != project || errors.Is(err, ErrNoErasure) {
		err = api.NewProblem(http.StatusNotFound, api.CodeNotFound, "id", "there is no such erasure")
	}
	if err != nil {
		return nil, err
	}
	out := &erasure{api.Erasure{ID: r.ID, Status: "pending"}}
	if r.Done() {
		out.Body.Status, out.Body.Receipt = "done", &r
	}
	return out, nil
}
