package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"palimpsest/internal/cursor"
)

const (
	// useEvery is how often the use of keys is written: often enough to be of use
	// in a list, and no work of a request.
	useEvery = 10 * time.Second
	// useLimit bounds one round of writing.
	useLimit = 5 * time.Second
	// followAgain is the pause after the bucket could not be read.
	followAgain = 250 * time.Millisecond
	dayForm     = "2006-01-02"
)

// Ring answers whether a token is good, from memory. It follows the bucket while
// [Ring.Run] runs; while the broker is away it answers from its last copy.
type Ring struct {
	bucket Bucket
	limits Limits
	now    func() time.Time
	log    *slog.Logger
	marks  []cursor.Store
	// unmarked are the marks that do not say yet that a key was made.
	unmarked []cursor.Store
	changes  Changes // replaced by reload

	mu     sync.RWMutex
	keys   map[string]*held
	some   bool // a key was ever read
	marked bool // the stores say that a key was made
}

// held is a key in memory, with what this process counts of it.
type held struct {
	key    Key
	limits Limits
	rate   *rate.Limiter // nil without a bound
	// ended ends when the key is revoked.
	ended context.Context //nolint:containedctx // of the key, not of a call
	end   context.CancelFunc

	mu   sync.Mutex
	last time.Time
	// counted is the number of requests on day that the bucket does not have yet;
	// shared is what the bucket had when it was last read.
	day     string
	counted int64
	shared  Use
}

// OpenRing reads the keys in a bucket. Limits are those of keys that have none of
// their own. The marks are stores in which the ring writes that a key was made, so
// that the next ring notices the loss of the bucket.
func OpenRing(ctx context.Context, bucket Bucket, marks []cursor.Store, limits Limits, now func() time.Time, log *slog.Logger) (*Ring, error) {
	r := &Ring{bucket: bucket, marks: marks, limits: limits, now: now, log: log}
	if err := r.readMarks(ctx); err != nil {
		return r, err
	}
	return r, r.reload(ctx)
}

// reload reads the bucket from its beginning. Meanwhile the previous keys are used.
func (r *Ring) reload(ctx context.Context) error {
	var found []entry
	changes, err := r.bucket.Load(ctx, entries(func(e entry) { found = append(found, e) }))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.keys {
		h.end()
	}
	r.keys = map[string]*held{}
	for _, e := range found {
		r.apply(e)
	}
	r.changes = changes
	return nil
}

// apply takes one change of the bucket; the caller holds r.mu.
func (r *Ring) apply(e entry) {
	h := r.keys[e.id]
	if h == nil {
		h = &held{}
		h.ended, h.end = context.WithCancel(context.Background())
		r.keys[e.id] = h
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.use != nil {
		h.shared = *e.use
		return
	}
	h.key, r.some = *e.key, true
	if h.key.ID == "" || h.key.RevokedAt != nil {
		h.end()
	}
	limits := h.key.Limits.or(r.limits)
	if limits.Rate != h.limits.Rate || limits.Burst != h.limits.Burst || h.rate == nil {
		h.rate = nil
		if limits.Rate > 0 {
			h.rate = rate.NewLimiter(rate.Limit(limits.Rate), burst(limits))
		}
	}
	h.limits = limits
}

func burst(l Limits) int {
	if l.Burst > 0 {
		return l.Burst
	}
	return max(1, int(l.Rate))
}

// Any reports whether a key was ever made. Revoked ones count, and those that the
// bucket lost: neither must let in callers without a key.
func (r *Ring) Any() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.some || r.marked
}

// ErrLost: a key was made, and the bucket holds none, not even a revoked one.
var ErrLost = errors.New(`the bucket of API keys (stream KV_KEYS) was lost, so no caller has a key: "palimpsest keys create" makes one`)

// Whole returns [ErrLost] if the bucket was lost, until a key is made.
func (r *Ring) Whole() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, h := range r.keys {
		if h.key.ID != "" {
			return nil
		}
	}
	if r.some || r.marked {
		return ErrLost
	}
	return nil
}

// ExcessError is an error of a key that asks for more than its limits allow.
type ExcessError struct {
	// Bound is what was exceeded: rate or daily.
	Bound string
	// After is when it is worth to ask again.
	After time.Duration
}

// Error implements error.
func (e *ExcessError) Error() string {
	return fmt.Sprintf("auth: the key exceeds its %s limit", e.Bound)
}

// Admit returns the caller that a token stands for, and counts a request of it. The
// error wraps [ErrUnknown], [ErrRevoked] or [ErrExpired], or is an [*ExcessError].
func (r *Ring) Admit(token string) (Caller, Limits, error) {
	id, secret, ok := parse(token)
	r.mu.RLock()
	h := r.keys[id]
	r.mu.RUnlock()
	if !ok || h == nil {
		return Caller{}, Limits{}, ErrUnknown
	}
	now := r.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.key.ID == "" || !h.key.accepts(secret, now) {
		return Caller{}, Limits{}, ErrUnknown
	}
	if err := h.key.usable(now); err != nil {
		return Caller{}, Limits{}, err
	}
	caller := Caller{KeyID: id, Project: h.key.Project, Role: h.key.Role, Users: h.key.Users, ended: h.ended}
	return caller, h.limits, h.count(now)
}

// count takes a request off what the key may ask for.
func (h *held) count(now time.Time) error {
	day := now.UTC().Format(dayForm)
	if h.day != day {
		h.day, h.counted = day, 0
	}
	today := h.counted
	if h.shared.Day == day {
		today += h.shared.Today
	}
	if h.limits.Daily > 0 && today >= h.limits.Daily {
		return &ExcessError{"daily", now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)}
	}
	if h.rate != nil {
		asked := h.rate.ReserveN(now, 1)
		if wait := asked.DelayFrom(now); wait > 0 {
			asked.CancelAt(now)
			return &ExcessError{"rate", wait}
		}
	}
	h.counted++
	h.last = now
	return nil
}

// Run follows the bucket and writes the use of keys, until ctx ends.
func (r *Ring) Run(ctx context.Context) error {
	var writing sync.WaitGroup
	writing.Go(func() {
		tick := time.NewTicker(useEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.writeUse(ctx)
			case <-ctx.Done():
				r.writeUse(context.WithoutCancel(ctx))
				return
			}
		}
	})
	defer writing.Wait()
	defer func() { r.changes.Close() }()
	var away atomic.Bool
	for ctx.Err() == nil {
		r.mark(ctx)
		err := r.follow(ctx)
		if err == nil {
			away.Store(false)
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if !away.Swap(true) {
			r.log.WarnContext(ctx, "auth: keys cannot be read; those of before are used", "error", err)
		}
		select {
		case <-time.After(followAgain):
		case <-ctx.Done():
		}
	}
	return nil
}

// follow applies the next changes.
func (r *Ring) follow(ctx context.Context) error {
	var got []entry
	err := r.changes.Next(ctx, entries(func(e entry) { got = append(got, e) }))
	if errors.Is(err, ErrRestored) {
		r.changes.Close()
		return r.reload(ctx)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range got {
		r.apply(e)
		if e.key != nil {
			r.log.InfoContext(ctx, "auth: key changed", "key", e.id, "name", e.key.Name, "project", e.key.Project,
				"role", e.key.Role.String(), "revoked", e.key.RevokedAt != nil)
		}
	}
	return nil
}

// writeUse adds what this process counted to the bucket. Uses that cannot be
// written are kept for the next round.
func (r *Ring) writeUse(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, useLimit)
	defer cancel()
	r.mu.RLock()
	used := map[string]*held{}
	for id, h := range r.keys {
		h.mu.Lock()
		if h.counted > 0 {
			used[id] = h
		}
		h.mu.Unlock()
	}
	r.mu.RUnlock()
	if len(used) == 0 {
		return
	}
	for id, h := range used {
		if err := h.write(ctx, r.bucket, id); err != nil {
			r.log.DebugContext(ctx, "auth: use of keys not written", "key", id, "error", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// write adds what was counted of one key. Another process may write the same entry:
// then the next round adds to its sum.
func (h *held) write(ctx context.Context, in Bucket, id string) error {
	var sum Use
	revision, err := in.Get(ctx, useEntry+id, &sum)
	if err != nil {
		return err
	}
	h.mu.Lock()
	day, n := h.day, h.counted
	if sum.Day != day {
		sum.Day, sum.Today = day, 0
	}
	sum.Today, sum.Total = sum.Today+n, sum.Total+n
	if h.last.After(sum.Last) {
		sum.Last = h.last.UTC()
	}
	h.mu.Unlock()
	if err := in.Put(ctx, useEntry+id, sum, revision); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.day == day {
		h.counted -= n
		h.shared = sum
	}
	return nil
}
