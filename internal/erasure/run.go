package erasure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"palimpsest/internal/failpoint"
	"palimpsest/internal/memory"
)

// Eraser erases and scans one place that holds data of users.
type Eraser struct {
	Name string
	// Erase deletes everything of the user, for a job of that id. It is idempotent.
	Erase func(ctx context.Context, job string, whom memory.Whom) (Removed, error)
	// Scan counts what is left of it.
	Scan func(ctx context.Context, job string, whom memory.Whom) (uint64, error)
}

// Removed is what a place removed.
type Removed struct {
	// Counts is how much of which kind; nil for a place that holds no data.
	Counts map[string]uint64
	// Beyond says what the place could not reach.
	Beyond []string
}

// Add adds what one more backend of a place removed.
func (r *Removed) Add(counts map[string]uint64, beyond []string) {
	for kind, n := range counts {
		r.Counts[kind] += n
	}
	r.Beyond = append(r.Beyond, beyond...)
}

// Work is how jobs are run.
type Work struct {
	Erasers []Eraser
	// Until returns the last sequence of EPISODES.
	Until func(ctx context.Context) (uint64, error)
	Now   func() time.Time
	// Unreachable is what no keeper reaches.
	Unreachable []string
}

// Run finishes every pending job, and returns the receipts. Nothing else may use
// the places meanwhile. After a death it goes on with the first place that was not
// done.
func (b *Book) Run(ctx context.Context, work Work) (done []Receipt, err error) {
	for _, r := range b.Pending() {
		if r, err = b.run(ctx, r, work); err != nil {
			return done, fmt.Errorf("erase %s: %w", r.ID, err)
		}
		done = append(done, r)
	}
	return done, nil
}

func (b *Book) run(ctx context.Context, r Receipt, work Work) (_ Receipt, err error) {
	failpoint.Reach(failpoint.Erasure, failpoint.Asked)
	whom := b.whom(r)
	if len(r.Places) == 0 {
		last, err := work.Until(ctx)
		if err != nil {
			return r, err
		}
		r.Until = max(r.Until, last)
		if err := b.put(r); err != nil {
			return r, err
		}
	}
	for _, k := range work.Erasers {
		if slices.ContainsFunc(r.Places, func(p Place) bool { return p.Name == k.Name }) {
			continue
		}
		removed, err := k.Erase(ctx, r.ID, whom)
		if err != nil {
			return r, fmt.Errorf("%s: %w", k.Name, err)
		}
		r.Places = append(r.Places, Place{Name: k.Name, Removed: removed.Counts, Beyond: removed.Beyond, At: work.Now().UTC()})
		if err := b.put(r); err != nil {
			return r, err
		}
		failpoint.Reach(failpoint.Erasure, k.Name)
	}
	for _, k := range work.Erasers {
		left, err := k.Scan(ctx, r.ID, whom)
		if err != nil {
			return r, fmt.Errorf("scan %s: %w", k.Name, err)
		}
		if left > 0 { // it is erased again at the next attempt
			r.Places = slices.DeleteFunc(slices.Clone(r.Places), func(p Place) bool { return p.Name == k.Name })
			if err := b.put(r); err != nil {
				return r, err
			}
			return r, fmt.Errorf("scan %s: %d are left", k.Name, left)
		}
	}
	failpoint.Reach(failpoint.Erasure, failpoint.Scanned)
	at := work.Now().UTC()
	r.FinishedAt, r.Unreachable, r.NothingFound = &at, work.Unreachable, !found(r)
	if err := b.key.seal(&r); err != nil {
		return r, err
	}
	if err := b.put(r); err != nil {
		return r, err
	}
	failpoint.Reach(failpoint.Erasure, failpoint.Receipt)
	return r, nil
}

// found reports whether any place had something of the user. Rows do not tell: answers
// that are kept for the project are among them.
func found(r Receipt) bool {
	for _, p := range r.Places {
		for kind, n := range p.Removed {
			if n > 0 && kind != "rows" {
				return true
			}
		}
	}
	return false
}

func (b *Book) put(r Receipt) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.save(r)
}
