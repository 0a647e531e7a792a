package query

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"palimpsest/internal/auth"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// resumeAgain is the pause before the first further look for quarantines to finish, and
// resumeMost the longest. A mark may come long after its request, whose command waits
// where a decider or the store is down.
const (
	resumeAgain = 500 * time.Millisecond
	resumeMost  = 5 * time.Minute
)

// Resume finishes every quarantine that has a mark, as its request would have. It looks
// for marks at once, for requests that ended with an earlier process, and after each
// request that ended before its quarantine was whole; then again after pauses that double.
// It returns when ctx ends.
func (s *Service) Resume(ctx context.Context) {
	ctx = auth.With(ctx, auth.Anyone)
	whole, pause := map[string]bool{}, resumeAgain
	for {
		if err := s.resume(ctx, whole); err != nil && ctx.Err() == nil {
			s.deps.Logger.WarnContext(ctx, "query: a quarantine waits", "error", err)
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			pause = min(2*pause, resumeMost)
		case <-s.unfinished:
			clear(whole)
			pause = resumeAgain
		case <-ctx.Done():
		}
		again.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// resume finishes the quarantines that are not known to be whole, and adds them to those.
// It leaves requests alone that this process carries out, whose marks come one by one.
func (s *Service) resume(ctx context.Context, whole map[string]bool) error {
	if s.quarantines.Load() > 0 {
		return nil
	}
	projects, err := s.deps.Store.Projects(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, project := range projects {
		marked, err := s.marked(ctx, project)
		errs = append(errs, err)
		for request, mark := range marked {
			if whole[request] {
				continue
			}
			err := s.finish(ctx, project, mark)
			whole[request] = err == nil
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// marked lists the quarantines of a project by the first mark of each, which is as old as
// its request; one that was set here is younger. Marks that do not say what their request
// was bounded to are left out.
func (s *Service) marked(ctx context.Context, project string) (out map[string]events.Hold, err error) {
	out = map[string]events.Hold{}
	q := store.HoldQuery{Limit: maxLimit}
	for {
		held, err := s.deps.Store.ListHolds(ctx, scope.Selector{Project: project, All: true}, q)
		if err != nil {
			return nil, err
		}
		for _, h := range held {
			if d := h.Distrust; d != nil && d.Request != "" && d.Within != nil && out[d.Request].Distrust == nil {
				out[d.Request] = h.Hold // they come in the order of HeldAt
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
	if err == nil && len(marks.scopes) > 0 && marks.request == whose.Request {
		if err = s.leaveReleased(ctx, &c, marks); err == nil {
			marks, err = s.marks(ctx, a, c)
		}
	}
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

// leaveReleased takes the messages out of c whose fact scopes had a mark of the request and
// have none now: a release that ended before it was whole took it back.
func (s *Service) leaveReleased(ctx context.Context, c *criteria, marks undoPlan) error {
	did, err := s.chosen(ctx, criteria{Undo: api.Undo{Request: marks.request}, sel: c.sel})
	maps.DeleteFunc(c.episodes, func(of episodeKey, _ bool) bool {
		in := did[of.owner]
		return in != nil && in.marks && marks.steps[of.owner] != nil
	})
	return err
}

// refuses reports whether err tells a caller that the same request always fails.
func refuses(err error) bool {
	p := explained(err)
	return p != nil && p.Status < http.StatusInternalServerError && p.Status != http.StatusTooManyRequests
}
