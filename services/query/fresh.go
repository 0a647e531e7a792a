package query

import (
	"context"
	"errors"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// token names a write that a later read must see: an episode by its id, an effect by
// its scope revision, a command by its request id while it has no effect, or the run
// of a rule by the watermark that it moves.
type token struct {
	Scope    string `json:"s"` // subject tokens
	Source   string `json:"o,omitempty"`
	Episode  string `json:"e,omitempty"`
	Revision uint64 `json:"r,omitempty"`
	Command  string `json:"c,omitempty"`
	Rule     string `json:"u,omitempty"`
	To       uint64 `json:"w,omitempty"` // an ordinal
}

// fresh waits until the write that at names is visible, for Config.Fresh at
// most, and says whether it is still not.
func (s *Service) fresh(ctx context.Context, project, at string) (stale bool, err error) {
	t, owner, err := readToken(project, at)
	if t == nil || err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Fresh)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		visible, err := s.visible(ctx, owner, *t)
		if visible || err != nil && ctx.Err() == nil {
			return false, err
		}
		select {
		case <-ctx.Done():
			return true, nil
		case <-time.After(pause):
		}
	}
}

// readToken returns nil for an empty token. One of another project is refused.
func readToken(project, at string) (*token, scope.Scope, error) {
	t, err := open[token]("at", at)
	if t == nil || err != nil {
		return nil, scope.Scope{}, err
	}
	owner, err := scope.ParseTokens(t.Scope)
	if err != nil || owner.Project != project {
		return nil, owner, invalid("at", "is not a token of this project")
	}
	return t, owner, nil
}

func (s *Service) visible(ctx context.Context, owner scope.Scope, t token) (bool, error) {
	if t.Command != "" {
		outcomes, err := s.deps.Store.Outcomes(ctx, owner.Project, t.Command)
		return settled(outcomes), err
	}
	if t.Episode == "" {
		state, err := s.deps.Store.State(ctx, owner.Fact())
		return state.Revision >= t.Revision && (t.Rule == "" || state.Watermarks[t.Rule] >= t.To), err
	}
	_, err := s.deps.Store.Episode(ctx, owner, t.Source, t.Episode)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
