package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// Config says what is run, and where.
type Config struct {
	Size
	// Program is the executable whose `up` is run.
	Program string
	// Dir is an empty directory, of the run's own.
	Dir string
	// Rules are the ids of the rules that are enabled; Each is the one of them
	// that runs on each episode.
	Rules []string
	Each  string
	// Patience is how long nothing may move before the run gives up waiting; 0
	// means 3 min. A tick that was lost is overdue after a minute and found by a
	// sweep that comes each minute.
	Patience time.Duration
	// Progress is told now and then how far the run is; nil tells nobody.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct{ Acknowledged, Consolidated, Kills int }

// look is how often the run asks the process how far it is.
const look = 50 * time.Millisecond

// Run publishes the workload, kills and restarts the process meanwhile, waits
// until everything is consolidated, stops the process and leaves the record in
// the directory. It ends what it started, also when ctx ends.
func Run(ctx context.Context, cfg Config) (Record, error) {
	w, err := Draw(cfg.Size)
	if err != nil {
		return Record{}, err
	}
	if cfg.Patience == 0 {
		cfg.Patience = 3 * time.Minute
	}
	log, err := os.Create(filepath.Join(cfg.Dir, logFile))
	if err != nil {
		return Record{}, fmt.Errorf("run chaos: %w", err)
	}
	defer log.Close() //nolint:errcheck // it is for reading along
	r := &run{cfg: cfg, workload: w, log: log, wire: newWire(), left: w.Kills, begun: time.Now()}
	r.publishers = newPublishers(w, r.wire)
	if err := r.all(ctx); err != nil {
		return Record{}, fmt.Errorf("run chaos: %w", err)
	}
	record, err := r.record()
	if err != nil {
		return record, err
	}
	return record, record.write(cfg.Dir)
}

// run is one run under way. Its loop alone starts and ends processes.
type run struct {
	cfg        Config
	workload   *Workload
	log        *os.File
	wire       *wire
	publishers *publishers
	process    *process
	watch      *watch
	left       []Kill
	begun      time.Time
	figures    Figures
	known      int    // episodes consolidated, when last asked
	settled    uint64 // the same, counted by each rule
}

func (r *run) all(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var group errgroup.Group
	defer func() {
		cancel()
		r.wire.set(nil)
		if r.process != nil {
			r.process.kill()
		}
		if stopped := group.Wait(); err == nil && r.figures.Stuck == "" {
			err = stopped
		}
	}()
	if err := r.begin(ctx); err != nil {
		return err
	}
	said := make(chan struct{})
	group.Go(func() error {
		defer close(said)
		return r.publishers.run(ctx)
	})
	if err := r.disturb(ctx, said); err != nil {
		return err
	}
	r.wire.set(nil)
	r.watch.close()
	p := r.process
	r.process = nil
	return p.stop()
}

// begin starts a life of the process and lets publishers in.
func (r *run) begin(ctx context.Context) error {
	p, err := begin(ctx, r.cfg.Program, Data(r.cfg.Dir), r.log)
	if err != nil {
		return err
	}
	r.process = p
	if r.watch, err = newWatch(ctx, p.http, Data(r.cfg.Dir)); err != nil {
		return err
	}
	l, err := connect(ctx, p.nats)
	if err != nil {
		return err
	}
	r.wire.set(l)
	return nil
}

// disturb kills the process wherever the workload says so, until everything is
// said, every kill was made and nothing is left to do, or nothing moves.
func (r *run) disturb(ctx context.Context, said <-chan struct{}) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	moved, last := time.Now(), r.reached()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.process.ended:
			return fmt.Errorf("%w: exit code %d, see %s", ErrEnded, r.process.cmd.ProcessState.ExitCode(), r.log.Name())
		case <-r.publishers.reached:
			if err := r.strike(ctx, Acknowledged, int(r.publishers.said.Load())); err != nil {
				return err
			}
		case <-ticker.C:
			done, err := r.look(ctx, said)
			if done || err != nil {
				return err
			}
		}
		now := r.reached()
		if now != last {
			moved, last = time.Now(), now
		} else if time.Since(moved) > r.cfg.Patience {
			r.figures.Stuck = fmt.Sprintf("nothing moved for %v at %+v: %v", r.cfg.Patience, now.Progress, r.watch.waiting)
			return nil
		}
	}
}

// reached is how far the run is: when it moves, nothing is stuck.
type reached struct {
	Progress
	settled uint64 // episodes, counted by each rule
}

func (r *run) reached() reached { return reached{r.progress(), r.settled} }

func (r *run) progress() Progress {
	p := Progress{Acknowledged: int(r.publishers.said.Load()), Consolidated: r.known, Kills: len(r.figures.Kills)}
	if r.cfg.Progress != nil {
		r.cfg.Progress(p)
	}
	return p
}

// strike makes the kills that a counter has reached, one after the other.
func (r *run) strike(ctx context.Context, counter Counter, count int) error {
	rest, reached := due(r.left, counter, count)
	r.left = rest
	for _, kill := range reached {
		killed := Killed{
			Kill:         kill,
			Acknowledged: int(r.publishers.said.Load()), Consolidated: r.known,
		}
		r.process.kill()
		r.wire.set(nil)
		r.watch.close()
		began := time.Now()
		if err := r.begin(ctx); err != nil {
			return err
		}
		killed.ReadyMS = time.Since(began).Milliseconds()
		r.figures.Kills = append(r.figures.Kills, killed)
	}
	return nil
}

// look asks the process how far it is, and reports whether that is the end.
func (r *run) look(ctx context.Context, said <-chan struct{}) (done bool, err error) {
	ledger, err := r.watch.ledger(ctx)
	if err != nil {
		return false, r.excuse(ctx, err)
	}
	r.settled = 0
	for _, t := range ledger.Totals {
		r.settled += t.Consolidated
		if t.Rule == r.cfg.Each {
			r.known = int(t.Consolidated)
		}
	}
	lives := len(r.figures.Kills)
	if err := r.strike(ctx, Consolidated, r.known); err != nil || len(r.figures.Kills) > lives {
		return false, err
	}
	select {
	case <-said:
	default:
		return false, nil
	}
	if len(r.left) > 0 {
		return false, nil
	}
	quiet, err := r.watch.quiet(ctx, ledger, r.cfg.Rules, r.cfg.Episodes)
	if err != nil {
		return false, r.excuse(ctx, err)
	}
	return quiet, nil
}

// excuse forgives a question that was not answered: the process may be busy, and
// if it has ended the loop says so.
func (r *run) excuse(ctx context.Context, err error) error {
	r.watch.waiting = err.Error()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

func (r *run) record() (Record, error) {
	digest, err := r.workload.Digest()
	if err != nil {
		return Record{}, err
	}
	p := r.publishers
	r.figures.RepeatedKnown, r.figures.RepeatedStored = int(p.swept.Load()), int(p.taken.Load())
	r.figures.Unacknowledged, r.figures.Seconds = int(p.retried.Load()), since(r.begun)
	return Record{Size: r.cfg.Size, Workload: digest, Acks: p.acks, Rules: r.cfg.Rules, Run: r.figures}, nil
}
