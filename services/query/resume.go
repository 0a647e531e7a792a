package query

import (
	"context"
	"errors"
	"net/http"
	"time"

	"palimpsest/internal/auth"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// resumeAgain is the pause before quarantines that could not be finished are tried again.
const resumeAgain = 5 * time.Second

// Resume finishes every quarantine that has a mark, as its request would have. It does so
// at once, for requests that ended with an earlier process, and again after each request
// that ended before its quarantine was whole. It returns when ctx ends.
func (s *Service) Resume(ctx context.Context) {
	ctx = auth.With(ctx, auth.Anyone)
	pause := time.NewTimer(resumeAgain)
	defer pause.Stop()
	for {
		var again <-chan time.Time
		if err := s.resume(ctx); err != nil && ctx.Err() == nil {
			s.deps.Logger.WarnContext(ctx, "query: a quarantine waits", "error", err)
			pause.Reset(resumeAgain)
			again = pause.C
		}
		select {
		case <-again:
		case <-s.unfinished:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) resume(ctx context.Context) error {
	projects, err := s.deps.Store.Projects(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, project := range projects {
		marked, err := s.marked(ctx, project)
		errs = append(errs, err)
		for _, mark := range marked {
			errs = append(errs, s.finish(ctx, project, mark))
		}
	}
	return errors.Join(errs...)
}

// marked lists the quarantines of a project by a mark of each. Marks that do not say what
// their request was bounded to are left out.
func (s *Service) marked(ctx context.Context, project string) (out map[string]events.Hold, err error) {
	out = map[string]events.Hold{}
	q := store.HoldQuery{Limit: maxLimit}
	for {
		held, err := s.deps.Store.ListHolds(ctx, scope.Selector{Project: project, All: true}, q)
		if err != nil {
			return nil, err
		}
		for _, h := range held {
			if d := h.Distrust; d != nil && d.Request != "" && d.Within != nil {
				out[d.Request] = h.Hold
			}
			cursor := store.HoldCursorOf(h)
			q.Cursor = &cursor
		}
		if len(held) < maxLimit {
			return out, nil
		}
	}
}

// finish repeats a quarantine under the id of its request, about the messages that had
// arrived by then. One that is whole stays as it is, and one that was released meanwhile
// has no mark.
func (s *Service) finish(ctx context.Context, project string, mark events.Hold) error {
	whose := *mark.Distrust
	c, err := s.criteria(ctx, project, api.Undo{
		User: whose.Within.User, Agent: whose.Within.Agent, Episode: whose.Episode, Session: whose.Session, SourceNode: whose.SourceNode,
	})
	if err != nil {
		return err
	}
	c.alone, c.until = true, mark.HeldAt
	if c.episodes, err = s.episodesOf(ctx, c); err != nil {
		return err
	}
	a := attempt{correlation: whose.Request}
	marks, err := s.marks(ctx, a, c)
	if err == nil && marks.request == whose.Request {
		var out *written
		if out, err = s.distrust(ctx, a, c, marks); err == nil && out.pending {
			err = errors.New("query: the commands of a quarantine wait")
		}
	}
	if refuses(err) {
		return nil // its messages are gone, or nothing is left to do
	}
	return err
}

// refuses reports whether err tells a caller that the same request always fails.
func refuses(err error) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Status < http.StatusInternalServerError
}
