package scheduler

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// slotsFor is how long a rule may be without a free slot before the store is asked which
// ticks are done: another process may have seen their commits. While commits give slots
// back, the store is asked only every slotsMost: to ask takes a look for each claim.
const (
	slotsFor  = 250 * time.Millisecond
	slotsMost = 5 * time.Second
)

// slots bounds the ticks of a project that this process knows to be under way, so that
// one tenant's import leaves room for the others. It knows its own claims, and those
// that its sweeps met.
//
// A rule whose ticks are stuck, say on a model that is down, could take all of
// them. So each rule is sure of a share that no other may use.
type slots struct {
	most  int
	rules []string // those that may ask
	off   []string // those that may if a caller wants it; they have no share
	look  func(ctx context.Context, fact scope.Scope) (store.Standing, error)

	mu       sync.Mutex
	projects map[string]*slot
}

// slot counts the slots of one project.
type slot struct {
	mu sync.Mutex
	// open are the claims under way, and the ordinals that they end at.
	open map[claimed]uint64
	// used counts open by rule, reserved the claims that are about to be set.
	used, reserved map[string]int
	// asked is when the store was last asked, moved when a rule last got a slot back.
	asked time.Time
	moved map[string]time.Time
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
		p = &slot{open: make(map[claimed]uint64), used: make(map[string]int), reserved: make(map[string]int), moved: make(map[string]time.Time)}
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
	n, err := s.freeOf(ctx, p, rule, now)
	if err != nil || n == 0 {
		return false, err
	}
	p.reserved[rule]++
	return true, nil
}

// settle gives back a reserved slot; a claim that was set counts from then on.
func (s *slots) settle(project, rule string) {
	p := s.of(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved[rule] = max(0, p.reserved[rule]-1)
}

// hold counts a claim that is under way.
func (s *slots) hold(c claimed, to uint64) {
	p := s.of(c.fact.Project)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.open[c]; !known {
		p.used[c.rule]++
	}
	p.open[c] = to
}

// release gives back the slot of a claim whose range was committed, and reports whether
// it was counted here. For one that was not it gives back another of the rule: processes
// that hear of each other's commits hear of as many as they set claims.
func (s *slots) release(c claimed, watermark uint64, now time.Time) bool {
	p := s.of(c.fact.Project)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved[c.rule] = now
	if p.release(c, watermark) {
		return true
	}
	if _, known := p.open[c]; !known {
		for other, to := range p.open {
			if other.rule == c.rule {
				p.release(other, to)
				break
			}
		}
	}
	return false
}

func (p *slot) release(c claimed, watermark uint64) bool {
	to, known := p.open[c]
	if !known || to > watermark {
		return false
	}
	delete(p.open, c)
	p.used[c.rule]--
	return true
}

// free is how many slots of the project are free for a rule.
func (s *slots) free(ctx context.Context, project, rule string, now time.Time) (int, error) {
	p := s.of(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.freeOf(ctx, p, rule, now)
}

// freeOf returns how many slots a rule may take. Where there is none, it asks the store
// which of the claims are settled.
func (s *slots) freeOf(ctx context.Context, p *slot, rule string, now time.Time) (int, error) {
	wait := slotsFor
	if now.Sub(p.moved[rule]).Abs() < slotsFor {
		wait = slotsMost
	}
	if n := s.left(p, rule); n > 0 || now.Sub(p.asked).Abs() < wait {
		return n, nil
	}
	p.asked = now
	for c := range maps.Clone(p.open) {
		look, err := s.look(ctx, c.fact)
		if err != nil {
			return 0, fmt.Errorf("count claims: %w", err)
		}
		settled := look.Watermarks[c.rule]
		if look.Claims[c.rule].Range.To <= settled {
			settled = p.open[c] // its user was erased, or a server lost it
		}
		p.release(c, settled)
	}
	return s.left(p, rule), nil
}

// left are the free slots, less the shares of the other rules. The claims of a rule
// that is no longer configured count as free: no process would release them.
func (s *slots) left(p *slot, rule string) int {
	left := s.most
	share := s.most / (2 * max(1, len(s.rules)))
	for _, other := range s.rules {
		left -= p.used[other] + p.reserved[other]
		if other != rule {
			left -= max(0, share-p.used[other]-p.reserved[other])
		}
	}
	for _, other := range s.off {
		left -= p.used[other] + p.reserved[other]
	}
	return max(0, left)
}
