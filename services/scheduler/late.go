package scheduler

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"palimpsest/pkg/scope"
)

// maxLate bounds the overdue claims that are remembered.
const maxLate = 64

// Late is a scope whose tick was not consolidated in time and was issued again.
type Late struct {
	Scope scope.Scope
	Rule  string
	// Since is when the first of its ticks was found overdue.
	Since time.Time
}

// late holds the claims that were found overdue until their range is settled.
type late struct {
	mu     sync.Mutex
	claims map[claimed]time.Time
}

// note remembers a claim unless there are too many.
func (l *late) note(c claimed, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.claims[c]; known || len(l.claims) >= maxLate {
		return
	}
	if l.claims == nil {
		l.claims = make(map[claimed]time.Time)
	}
	l.claims[c] = now
}

func (l *late) forget(c claimed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.claims, c)
}

func (l *late) list() []Late {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Late, 0, len(l.claims))
	for c, since := range l.claims {
		out = append(out, Late{Scope: c.fact, Rule: c.rule, Since: since})
	}
	slices.SortFunc(out, func(a, b Late) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Scope.String(), b.Scope.String()), strings.Compare(a.Rule, b.Rule))
	})
	return out
}

// Late lists scopes whose claims this process found overdue, oldest first, as long
// as their ranges are not consolidated. It may be called concurrently.
func (s *Service) Late() []Late { return s.late.list() }

// relieve forgets the claims that were settled meanwhile, perhaps by another
// process. One that cannot be read stays for the next sweep.
func (s *Service) relieve(ctx context.Context) {
	for _, l := range s.late.list() {
		look, err := s.deps.Schedule.Look(ctx, l.Scope)
		if err == nil && look.Claims[l.Rule].Range.To <= look.Watermarks[l.Rule] {
			s.late.forget(claimed{l.Scope, l.Rule})
		}
	}
}
