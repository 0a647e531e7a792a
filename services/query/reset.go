package query

import (
	"context"
	"net/http"
	"slices"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

type resetInput struct {
	ProjectParam
	KeyHeader
}

// reset closes every fact of a project, so that no read finds one, and then asks for
// the erasure of its users.
func (s *Service) reset(ctx context.Context, in *resetInput) (*written, error) {
	project, err := s.project(in.ProjectParam)
	if err != nil {
		return nil, err
	}
	switch {
	case !s.config.AllowReset:
		return nil, api.NewProblem(http.StatusForbidden, api.CodeForbidden, "", "a reset is not allowed here: set query.allow_reset")
	case s.deps.Erasures == nil:
		return nil, api.NewProblem(http.StatusNotImplemented, api.CodeNotImplemented, "",
			"erasing works where one process runs every service; stop the services and run \"palimpsest erase --data\"; nothing was changed")
	}
	return s.once(ctx, project, "POST /v1/reset", in.Key, nil, func(a attempt) (*written, error) {
		return s.resetAll(ctx, a, project, in.Key)
	})
}

func (s *Service) resetAll(ctx context.Context, a attempt, project, key string) (*written, error) {
	owners, err := s.ownersOf(ctx, scope.Selector{Project: project, All: true})
	if err != nil {
		return nil, err
	}
	var users []string
	for _, owner := range owners {
		if owner.User != "" {
			users = append(users, owner.User)
		}
	}
	out, err := s.deleteAll(ctx, a, owners, "")
	if err != nil {
		return nil, err
	}
	slices.Sort(users)
	if users = slices.Compact(users); len(users) == 0 {
		return out, nil
	}
	if out.Body.Erasures, err = s.deps.Erasures.AskAll(ctx, project, users, key); err != nil {
		return nil, err
	}
	out.Status, out.Body.Status, out.Body.Results, out.pending = http.StatusAccepted, statusAccepted, nil, true
	return out, nil
}
