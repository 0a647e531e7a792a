package scheduler

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// A cron rule is due in a scope when it fired since the scope's oldest pending
// episode arrived. That follows from the clock and the store at any time, so a
// missed fire is made up for once, and a scope that needs several ticks gets them.
// The stored last fire is the one up to which every scope was served; no scope is
// read before the next.

// fires holds the newest fire of each cron rule that is not served.
type fires struct {
	mu   sync.Mutex
	open map[string]fire
}

type fire struct {
	at time.Time
	// spread is over how long scopes are served, counted from at.
	spread time.Duration
	// found counts the scopes that the sweep under way found due, or not yet in
	// turn.
	found int
}

func (f *fires) get(rule string) (fire, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	open, ok := f.open[rule]
	return open, ok
}

func (f *fires) set(rule string, open fire) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = make(map[string]fire)
	}
	f.open[rule] = open
}

func (f *fires) remove(rule string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, rule)
}

func (f *fires) count(rule string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if open, ok := f.open[rule]; ok {
		open.found++
		f.open[rule] = open
	}
}

// openFire begins a sweep of a cron rule: its newest fire is open unless it was
// served.
func (s *Service) openFire(ctx context.Context, r rule, now time.Time) error {
	if r.cron == nil {
		return nil
	}
	at := r.cron.Last(now)
	served, err := s.deps.Schedule.LastFire(ctx, r.ID)
	if err != nil {
		return fmt.Errorf("read last fire: %w", err)
	}
	if !at.After(served) {
		s.fires.remove(r.ID)
		return nil
	}
	spread := s.cfg.Jitter
	if next := r.cron.After(at); !next.IsZero() {
		spread = min(spread, next.Sub(at)/2)
	}
	s.fires.set(r.ID, fire{at: at, spread: spread})
	return nil
}

// closeFire ends a sweep that saw every pending scope: if none had to be
// served, the fire is.
func (s *Service) closeFire(ctx context.Context, r rule, now time.Time) error {
	f, ok := s.fires.get(r.ID)
	if !ok || f.found > 0 || now.Before(f.at.Add(f.spread)) {
		return nil
	}
	if err := s.deps.Schedule.SetLastFire(ctx, r.ID, f.at); err != nil {
		return fmt.Errorf("store last fire: %w", err)
	}
	s.fires.remove(r.ID)
	return nil
}

// fired reports whether a rule's open fire is later than the arrival of the
// oldest pending episode of a scope, and the scope's turn has come.
func (s *Service) fired(ctx context.Context, r rule, fact scope.Scope, watermark uint64) (bool, error) {
	f, ok := s.fires.get(r.ID)
	if !ok {
		return false, nil
	}
	oldest, err := s.deps.Episodes.EpisodeRange(ctx, fact, events.Range{From: watermark, To: watermark + 1})
	if err != nil {
		return false, fmt.Errorf("read oldest pending episode: %w", err)
	}
	// An ordinal without an episode has nothing to wait for.
	if len(oldest) > 0 && oldest[0].ArrivedAt.After(f.at) {
		return false, nil
	}
	s.fires.count(r.ID)
	return !s.deps.Now().Before(f.at.Add(jitter(r.ID, fact, f.spread))), nil
}

// jitter is a scope's share of the spread: the same for every replica.
func jitter(rule string, fact scope.Scope, spread time.Duration) time.Duration {
	if spread <= 0 {
		return 0
	}
	h := fnv.New64a()
	for _, part := range []string{rule, fact.Project, fact.Key()} {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return time.Duration(h.Sum64() % uint64(spread))
}
