package chaos

import (
	"context"
	"time"
)

// byClock makes the kills that wait for the clock.
func (r *run) byClock(ctx context.Context) error {
	begun := time.Now()
	for n := range r.cfg.Kills {
		at := time.Duration(n+1) * r.cfg.Every
		if err := pause(ctx, time.Until(begun.Add(at))); err != nil {
			return err
		}
		if err := r.strike(ctx, Elapsed, int(at.Milliseconds())); err != nil {
			return err
		}
	}
	return nil
}

// strike makes the kills that a counter has reached, one after the other.
func (r *run) strike(ctx context.Context, counter Counter, count int) error {
	for _, kill := range r.progress.due(counter, count) {
		if err := r.kill(ctx, kill); err != nil {
			return err
		}
	}
	return nil
}

// kill ends a process and begins its next life. Where it took the broker with it,
// nothing goes on before that one is ready.
func (r *run) kill(ctx context.Context, kill Kill) error {
	now := r.progress.now(r.publishers)
	victim := r.processes.life(kill.Process)
	killed := Killed{
		Kill: kill, Name: victim.of.Name, Acknowledged: now.Acknowledged, Consolidated: now.Consolidated,
	}
	at := time.Now()
	victim.kill()
	if !r.cfg.Plan.shared() {
		r.wire.set(nil)
		r.watch.close()
	}
	next, err := r.processes.launch(kill.Process)
	if err != nil {
		return err
	}
	r.progress.struck(killed, next, at)
	if r.cfg.Plan.shared() {
		return nil
	}
	if err := next.await(ctx); err != nil {
		return err
	}
	return r.meet(ctx)
}

// look asks how far the processes are, and reports whether that is the end.
func (r *run) look(ctx context.Context, published <-chan struct{}) (done bool, err error) {
	ledger, err := r.watch.ledger(ctx, r.processes.answers())
	if err != nil {
		return false, r.excuse(ctx, err)
	}
	settled, known := uint64(0), 0
	for _, t := range ledger.Totals {
		settled += t.Consolidated
		if t.Rule == r.cfg.Each {
			known = int(t.Consolidated)
		}
	}
	r.progress.reach(known, settled)
	now := r.progress.now(r.publishers)
	if r.cfg.Progress != nil {
		r.cfg.Progress(now.Progress)
	}
	if err := r.strike(ctx, Consolidated, known); err != nil {
		return false, err
	}
	select {
	case <-published:
	default:
		return false, nil
	}
	if after := r.progress.now(r.publishers); after.Kills > now.Kills || r.progress.more() {
		return false, nil
	}
	quiet, err := r.watch.quiet(ctx, ledger, r.cfg.Rules, r.cfg.Episodes)
	if quiet {
		quiet, err = r.watch.audited(ctx, r.processes.answers())
	}
	if err != nil {
		return false, r.excuse(ctx, err)
	}
	return quiet, nil
}

// excuse forgives a question that was not answered: the process may be busy, or
// be starting, and if it has ended by itself the loop says so.
func (r *run) excuse(ctx context.Context, err error) error {
	r.watch.wait("%v", err)
	return ctx.Err()
}
