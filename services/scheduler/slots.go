package scheduler

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// slotsFor is how long a count is trusted. Within it, the process's own claims
// and commits are counted; those of other replicas are seen with the next.
const slotsFor = 250 * time.Millisecond

// slots bounds the ticks of a project that are under way, so that one tenant's
// import leaves room for the others. The count is the store's, cached for a moment;
// replicas may exceed the bound by the claims that they make at the same time.
//
// A rule whose ticks are stuck, say on a model that is down, could take all of
// them. So each rule is sure of a share that no other may use.
type slots struct {
	most  int
	rules []string // those that may ask
	count func(ctx context.Context, project string) (map[string]int, error)

	mu       sync.Mutex
	projects map[string]*slot
}

// slot counts the slots of one project.
type slot struct {
	mu sync.Mutex
	// used are, by rule, the claims that the store counted or that were set
	// since; reserved those about to be set.
	used, reserved map[string]int
	known          time.Time
}

// maxProjects bounds what is remembered.
const maxProjects = 10_000

func (s *slots) of(project string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.projects == nil || len(s.projects) >= maxProjects {
		s.projects = make(map[string]*slot)
	}
	p := s.projects[project]
	if p == nil {
		p = &slot{used: make(map[string]int), reserved: make(map[string]int)}
		s.projects[project] = p
	}
	return p
}

// take reserves a slot of the project for a rule if one is free; settle must
// follow.
func (s *slots) take(ctx context.Context, project, rule string, now time.Time) (bool, error) {
	p := s.of(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := s.refresh(ctx, project, p, now); err != nil || s.freeOf(p, rule) == 0 {
		return false, err
	}
	p.reserved[rule]++
	return true, nil
}

// settle says what became of a reserved slot.
func (s *slots) settle(project, rule string, claimed bool) {
	p := s.of(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved[rule] = max(0, p.reserved[rule]-1)
	if claimed {
		p.used[rule]++
	}
}

// release gives back the slot of a claim whose range was committed.
func (s *slots) release(project, rule string) {
	p := s.of(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[rule] = max(0, p.used[rule]-1)
}

// free is how many slots of the project are free for a rule.
func (s *slots) free(ctx context.Context, project, rule string, now time.Time) (int, error) {
	p := s.of(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := s.refresh(ctx, project, p, now); err != nil {
		return 0, err
	}
	return s.freeOf(p, rule), nil
}

func (s *slots) refresh(ctx context.Context, project string, p *slot, now time.Time) error {
	if !p.known.IsZero() && now.Sub(p.known).Abs() < slotsFor {
		return nil
	}
	used, err := s.count(ctx, project)
	if err != nil {
		return fmt.Errorf("count claims: %w", err)
	}
	p.used, p.known = maps.Clone(used), now
	if p.used == nil {
		p.used = make(map[string]int)
	}
	return nil
}

// freeOf returns how many slots a rule may take: the free ones, less the shares of
// the others. The claims of a rule that is no longer configured count as free: no
// process would release them.
func (s *slots) freeOf(p *slot, rule string) int {
	left := s.most
	share := s.most / (2 * len(s.rules))
	for _, other := range s.rules {
		left -= p.used[other] + p.reserved[other]
		if other != rule {
			left -= max(0, share-p.used[other]-p.reserved[other])
		}
	}
	return max(0, left)
}
