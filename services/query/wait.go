package query

import (
	"context"
	"errors"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// lookAgain is how often a waiter reads the store besides on announcements, which
// are best effort.
const lookAgain = 250 * time.Millisecond

// waiter is subscribed to the outcome of one request from before it is
// published, so that no announcement is missed.
type waiter struct {
	s         *Service
	announced <-chan events.Outcome
	stop      func()
	// look reads the outcomes of the request so far.
	look func(context.Context) ([]events.Outcome, error)
}

func (s *Service) listen(ctx context.Context, project, correlation string) (*waiter, error) {
	announced, stop, err := s.deps.Listener.Listen(ctx, correlation)
	if err != nil {
		return nil, err
	}
	look := func(ctx context.Context) ([]events.Outcome, error) {
		return s.deps.Store.Outcomes(ctx, project, correlation)
	}
	return &waiter{s: s, announced: announced, stop: stop, look: look}, nil
}

// wait returns the outcomes once whole reports that they are complete. It returns
// false when the time is up or the caller has gone; the work goes on. The store
// decides; announcements only wake the waiter. A failed read of the store is
// repeated: the request is accepted, and its outcome is only late.
func (w *waiter) wait(ctx context.Context, most time.Duration, whole func([]events.Outcome) bool) ([]events.Outcome, bool) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		outcomes, err := w.look(ctx)
		if err == nil && whole(outcomes) {
			return outcomes, true
		}
		select {
		case <-ctx.Done():
			if err != nil && !isContext(err) {
				w.s.deps.Logger.WarnContext(ctx, "query: outcome could not be read", "error", err)
			}
			return nil, false
		case _, listening := <-w.announced:
			if !listening {
				w.announced = nil
			}
		case <-again.C:
		}
	}
}

// covers reports whether outcomes of a rule cover every episode. A skipped
// range covers its episodes too: nothing more will come of them.
func covers(rules map[string]bool, ids []string) func([]events.Outcome) bool {
	return func(outcomes []events.Outcome) bool {
		missing := make(map[string]bool, len(ids))
		for _, id := range ids {
			missing[id] = true
		}
		for _, o := range outcomes {
			if !rules[o.Rule] {
				continue
			}
			for _, id := range o.EpisodeIDs {
				delete(missing, id)
			}
		}
		return len(missing) == 0
	}
}

// settled is the whole of a command: one outcome.
func settled(outcomes []events.Outcome) bool { return len(outcomes) > 0 }

// answering lists the rules that run on every episode: they answer waiters.
func (s *Service) answering() map[string]bool {
	out := map[string]bool{}
	for _, r := range s.deps.Rules {
		if r.Enabled && r.Cadence.Every == 1 {
			out[r.ID] = true
		}
	}
	return out
}

// passedOver adds what no outcome tells: messages in a range that was buried
// before it was known whose they are. Watermark and outcomes become visible at
// once, so what lies below the one and has none of the others was skipped.
func (s *Service) passedOver(
	r said, ids []string, rules map[string]bool, told func(context.Context) ([]events.Outcome, error),
) func(context.Context) ([]events.Outcome, error) {
	return func(ctx context.Context) ([]events.Outcome, error) {
		state, err := s.deps.Store.State(ctx, r.owner.Fact())
		if err != nil {
			return nil, err
		}
		all, err := told(ctx)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if covers(rules, []string{id})(all) {
				continue
			}
			e, err := s.deps.Store.Episode(ctx, r.owner, source, id)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for rule := range rules {
				if state.Watermarks[rule] >= e.Ordinal {
					all = append(all, events.Outcome{Rule: rule, EpisodeIDs: []string{id}, Skipped: "its range is in the dead letters"})
				}
			}
		}
		return all, nil
	}
}
