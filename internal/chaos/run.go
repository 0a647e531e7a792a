package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"palimpsest/internal/broker"
)

// Config says what is run, and where.
type Config struct {
	Size
	Plan Plan
	// Program is the executable whose commands are run.
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
	// Progress receives the state of the run now and then, unless it is nil.
	Progress func(Progress)
}

// validate names what does not fit together.
func (c Config) validate() error {
	switch {
	case max(1, c.Processes) != len(c.Plan.Processes):
		return fmt.Errorf("processes: the size is of %d, the plan of %d", c.Processes, len(c.Plan.Processes))
	case !c.Plan.shared() && len(c.Plan.Processes) > 1:
		return errors.New("broker: several processes need a shared one")
	case !c.Plan.shared() && c.Every > 0:
		return errors.New("every: a process that has the broker is killed at counts")
	}
	return nil
}

// Progress is how far a run is.
type Progress struct{ Acknowledged, Consolidated, Kills int }

const (
	// look is how often the run asks how far the processes are.
	look = 50 * time.Millisecond
	// glance is the same where no kill waits for the answer, and several processes
	// have better things to do.
	glance = time.Second
)

// Run publishes the workload, kills and restarts processes meanwhile, waits until
// everything is consolidated, stops the processes and leaves the record in the
// directory. It ends what it started, also when ctx ends.
func Run(ctx context.Context, cfg Config) (Record, error) {
	if err := cfg.validate(); err != nil {
		return Record{}, fmt.Errorf("run chaos: %w", err)
	}
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
	r := &run{
		cfg: cfg, workload: w, log: log, wire: newWire(), processes: newProcesses(cfg.Program, cfg.Plan, log),
		progress: progress{left: w.Kills}, begun: time.Now(),
	}
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

// run is one run under way. Its loop alone starts and ends processes, until they
// are killed by a clock.
type run struct {
	cfg        Config
	workload   *Workload
	log        *os.File
	wire       *wire
	publishers *publishers
	processes  *processes
	watch      *watch
	progress   progress
	begun      time.Time
	figures    Figures
}

func (r *run) all(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var group errgroup.Group
	defer func() {
		cancel()
		r.wire.set(nil)
		stopped := group.Wait()
		r.processes.kill()
		if err == nil && r.figures.Stuck == "" {
			err = stopped
		}
	}()
	if err := r.processes.begin(ctx); err != nil {
		return err
	}
	if err := r.meet(ctx); err != nil {
		return err
	}
	defer func() { r.watch.close() }()
	published, clocked := make(chan struct{}), make(chan error, 1)
	group.Go(func() error {
		defer close(published)
		return r.publishers.run(ctx)
	})
	if r.cfg.Every > 0 {
		group.Go(func() error {
			err := r.byClock(ctx)
			clocked <- err
			return err
		})
	}
	if err := r.disturb(ctx, published, clocked); err != nil {
		return err
	}
	r.wire.set(nil)
	return r.processes.stop(ctx)
}

// meet lets publishers in, and begins to watch.
func (r *run) meet(ctx context.Context) (err error) {
	eyes, mouths := r.cfg.Plan.Broker, r.cfg.Plan.Broker
	if !r.cfg.Plan.shared() {
		if eyes, err = broker.Endpoint(filepath.Join(Data(r.cfg.Dir), "nats")); err != nil {
			return err
		}
		mouths = broker.ConnectConfig{URL: r.processes.life(0).nats}
	}
	eyes.Name, mouths.Name = "chaos", "chaos"
	if r.watch, err = newWatch(ctx, eyes); err != nil {
		return err
	}
	l, err := connect(ctx, mouths)
	if err != nil {
		r.watch.close()
		return err
	}
	r.wire.set(l)
	return nil
}

// disturb kills processes wherever the workload says so, until everything is
// published, every kill was made and nothing is left to do, or nothing moves.
func (r *run) disturb(ctx context.Context, published <-chan struct{}, clocked <-chan error) error {
	pace := look
	if r.cfg.Every > 0 {
		pace = glance
	}
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	moved, last := time.Now(), r.progress.now(r.publishers)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-r.processes.failed:
			return fmt.Errorf("%w, see %s", err, r.log.Name())
		case err := <-clocked:
			if err != nil {
				return err
			}
		case <-r.publishers.reached:
			if err := r.strike(ctx, Acknowledged, int(r.publishers.acknowledged.Load())); err != nil {
				return err
			}
		case <-ticker.C:
			done, err := r.look(ctx, published)
			if done {
				r.figures.Backlog, r.figures.DrainSeconds = r.progress.drained()
			}
			if done || err != nil {
				return err
			}
		}
		now := r.progress.now(r.publishers)
		if now != last {
			moved, last = time.Now(), now
		} else if time.Since(moved) > r.cfg.Patience {
			r.figures.Stuck = fmt.Sprintf("nothing moved for %v at %+v: %v", r.cfg.Patience, now.Progress, r.watch)
			return nil
		}
	}
}

func (r *run) record() (Record, error) {
	digest, err := r.workload.Digest()
	if err != nil {
		return Record{}, err
	}
	p := r.publishers
	r.figures.Kills = r.progress.kills()
	r.figures.RepeatedKnown, r.figures.RepeatedStored = int(p.swept.Load()), int(p.taken.Load())
	r.figures.Unacknowledged, r.figures.Seconds = int(p.retried.Load()), since(r.begun)
	return Record{
		Size: r.cfg.Size, Workload: digest, Acks: p.acks, Rules: r.cfg.Rules, Run: r.figures,
	}, nil
}
