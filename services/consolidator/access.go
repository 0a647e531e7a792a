package consolidator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const (
	// accessEvery is how often an access of a fact counts.
	accessEvery = time.Minute
	// maxAccesses bounds the accesses that are remembered.
	maxAccesses = 1 << 16
)

// accesses are when facts were last counted. Forgetting one counts an access more:
// statistics are no promise.
type accesses struct {
	mu   sync.Mutex
	last map[accessed]time.Time
}

type accessed struct {
	scope scope.Scope
	id    string
}

// due returns which facts are to be counted, each once.
func (a *accesses) due(fact scope.Scope, ids []string, at time.Time) (list []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if last, known := a.last[accessed{fact, id}]; !known || at.Sub(last).Abs() >= accessEvery {
			list = append(list, id)
		}
	}
	return list
}

func (a *accesses) counted(fact scope.Scope, ids []string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.last)+len(ids) > maxAccesses {
		maps.DeleteFunc(a.last, func(_ accessed, last time.Time) bool { return at.Sub(last).Abs() >= accessEvery })
	}
	if a.last == nil || len(a.last)+len(ids) > maxAccesses {
		a.last = make(map[accessed]time.Time)
	}
	for _, id := range ids {
		a.last[accessed{fact, id}] = at
	}
}

// access counts the facts that were returned, each at most once a minute. The scope
// may have been reset since.
func (s *Service) access(ctx context.Context, in []events.Event[events.FactReturned]) ([]events.Payload, error) {
	last := in[len(in)-1].Data
	var ids []string
	for _, e := range in {
		if e.Data.Incarnation != last.Incarnation {
			continue
		}
		ids = append(ids, e.Data.FactIDs...)
		if e.Data.At.After(last.At) {
			last.At = e.Data.At
		}
	}
	if ids = s.accesses.due(last.Scope, ids, last.At); len(ids) == 0 {
		return nil, nil
	}
	state, err := s.deps.Applier.State(ctx, last.Scope)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if last.Incarnation < state.Incarnation {
		return nil, nil
	}
	if err := s.deps.Applier.Touch(ctx, last.Scope, ids, last.At); err != nil {
		return nil, fmt.Errorf("touch facts: %w", err)
	}
	s.accesses.counted(last.Scope, ids, last.At)
	return nil, nil
}
