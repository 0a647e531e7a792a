package scheduler

import (
	"context"
	"maps"
	"sync"
	"time"

	"palimpsest/pkg/scope"
)

// requests bounds how many ticks of the rule of requests are under way in a project.
// They take slots of the rule that answers, and wait while a model is down: without a
// bound they could take all, and no message of the project would be read.
//
// A request beyond the bound is not queued, where it would hold up others; a sweep,
// which follows the end of a tick, finds it again. The bound is that of one process.
type requests struct {
	mu sync.Mutex
	// open are by project the scopes that have one, and the ordinal that it ends at.
	open map[string]map[scope.Scope]uint64
	// relieved is when the store was last asked which of a project's are done.
	relieved map[string]time.Time
	// refused are the projects of which a scope was beyond the bound since a sweep was
	// asked for.
	refused map[string]bool
}

// begin reports whether a scope may have a tick, and counts it.
func (q *requests) begin(fact scope.Scope, to uint64, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open, q.relieved = map[string]map[scope.Scope]uint64{}, map[string]time.Time{}
		q.refused = map[string]bool{}
	}
	of := q.open[fact.Project]
	if of == nil {
		of = map[scope.Scope]uint64{}
		q.open[fact.Project] = of
	}
	if _, again := of[fact]; !again && len(of) >= most {
		q.refused[fact.Project] = true
		return false
	}
	of[fact] = to
	return true
}

// end counts the tick of a scope no longer. It reports whether that makes room for a
// scope that was beyond the bound.
func (q *requests) end(fact scope.Scope) (room bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, counted := q.open[fact.Project][fact]; !counted {
		return false
	}
	room = q.refused[fact.Project]
	delete(q.refused, fact.Project)
	delete(q.open[fact.Project], fact)
	if len(q.open[fact.Project]) == 0 {
		delete(q.open, fact.Project)
		delete(q.relieved, fact.Project)
	}
	return room
}

// due returns the ticks of a project, unless they were returned a moment ago.
func (q *requests) due(project string, now time.Time) map[scope.Scope]uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.relieved[project]).Abs() < slotsFor {
		return nil
	}
	q.relieved[project] = now
	return maps.Clone(q.open[project])
}

// relieveRequests forgets the ticks that were consolidated: another process may have
// seen the commit.
func (s *Service) relieveRequests(ctx context.Context, project string, now time.Time) error {
	for fact, to := range s.requests.due(project, now) {
		state, err := s.deps.Schedule.State(ctx, fact)
		if err != nil {
			return err
		}
		if state.Watermarks[s.answering] >= to {
			s.endRequest(fact)
		}
	}
	return nil
}

// endRequest gives the place of a scope's tick to the others of its project.
func (s *Service) endRequest(fact scope.Scope) {
	if s.requests.end(fact) {
		nudge(s.sweepAgain)
	}
}
