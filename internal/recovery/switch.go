package recovery

import (
	"context"
	"errors"
	"time"

	"palimpsest/internal/store"
)

// ErrAbsent means that there is no memory store to read.
var ErrAbsent = errors.New("there is no memory store")

// closeLimit bounds the removal of a store that was not taken.
const closeLimit = 15 * time.Second

// Mode is what a rebuild may do.
type Mode struct {
	Check  bool   // only compare
	Accept uint64 // how many episodes and facts may be lost
}

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Result
	Switched bool   `json:"switched"`
	Kept     string `json:"kept,omitempty"` // where the generation before is kept
}

// Run rebuilds the memory store beside the present one, and puts it in its
// place unless mode.Check is set. Killed at any moment, it leaves one of the two, whole.
// It returns a [*LossError] where the new store would have fewer episodes or facts than
// mode.Accept allows.
func (r *Rebuild) Run(ctx context.Context, mode Mode) (out Rebuilt, err error) {
	defer func() { err = errors.Join(err, r.close(context.WithoutCancel(ctx))) }()
	if err := r.openLive(ctx); err != nil {
		return out, err
	}
	if r.said, err = r.in.Episodes.Extent(ctx); err != nil {
		return out, err
	}
	if r.committed, err = r.in.Effects.Extent(ctx); err != nil {
		return out, err
	}
	if mode.Check {
		err = r.run(ctx, false)
		if out.Result = r.out; err != nil {
			return out, err
		}
		// Removing what was made takes as long as there is much of it, and is no part
		// of closing.
		return out, r.release().Discard(ctx)
	}
	err = r.run(ctx, true)
	if out.Result = r.out; err != nil {
		return out, err
	}
	if r.out.Lost.Total() > mode.Accept {
		return out, &LossError{r.out.Lost}
	}
	if err := r.complete(ctx); err != nil {
		return out, err
	}
	if err := r.resumeAudit(ctx); err != nil {
		return out, err
	}
	made, live := r.release(), r.live
	r.live = nil
	out.Kept, err = made.TakeOver(ctx, live, store.Remedy{Episodes: r.in.StoreAgain, Effects: r.in.ApplyAgain})
	out.Switched = err == nil
	return out, err
}

// openLive opens the store that is there. That it cannot be read is why there is a
// rebuild.
func (r *Rebuild) openLive(ctx context.Context) error {
	live, err := r.in.Live(ctx)
	switch {
	case err == nil:
		r.live = live
	case errors.Is(err, store.ErrDamaged):
		r.liveError, r.damaged = err, true
	case errors.Is(err, ErrAbsent):
		r.liveError = err
	default:
		return err
	}
	return nil
}

// resumeAudit lets AUDIT, if it was lost or cut short, go on behind the newest
// effect that the new store has: an append names the sequence of its scope's
// newest effect. What AUDIT still holds is in the audit log then.
func (r *Rebuild) resumeAudit(ctx context.Context) error {
	end := r.out.AuditEnd
	if end <= r.committed.Last {
		return nil
	}
	if _, err := r.commits.FillLog(ctx, r.in.Effects); err != nil {
		return err
	}
	r.log.Warn("AUDIT lost its end and continues after it; the audit log has the lost effects", "last", r.committed.Last, "resumed_at", end+1)
	return r.in.Journal.ResumeAt(ctx, end+1)
}

// release hands over the store under construction, which is the caller's then.
func (r *Rebuild) release() Draft {
	made := r.made
	r.made = nil
	return made
}

// close removes what was made and not taken, and closes the live store.
func (r *Rebuild) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	var errs []error
	if r.made != nil {
		errs = append(errs, r.release().Discard(ctx))
	}
	if r.live != nil {
		errs = append(errs, r.live.Close())
	}
	return errors.Join(errs...)
}

// countDropped sets where each scope goes on counting, where EPISODES dropped episodes
// that are nowhere else.
func (r *Rebuild) countDropped(ctx context.Context) error {
	c := Counting{Ingest: r.ingest, Episodes: r.in.Episodes, Log: r.in.Log, Journal: r.in.Journal, Into: r.made}
	if r.live != nil {
		c.Live = r.live
	}
	return c.Run(ctx)
}

// complete adds what is no part of the comparison: what the live store has beside the
// streams, and vectors. Without vectors a store works as well, and they follow: an
// embedder that is down stops nothing.
func (r *Rebuild) complete(ctx context.Context) error {
	if r.live != nil {
		if err := r.tolerate(r.made.Inherit(ctx, r.live)); err != nil {
			return err
		}
	}
	stats, err := r.made.Stats(ctx)
	if err != nil {
		return err
	}
	step, end := r.in.Part("vectors", stats.VectorsPending)
	err = r.ingest.EmbedAll(ctx, r.made.Settle, step)
	end()
	if err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "vectors follow later", "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	return r.made.Seal(ctx)
}
