package pipeline

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// logGroup runs the readers of one log that are this process's share.
type logGroup struct {
	*Log
	rt      *Runtime
	service string
	process string // its name among those that share the log
	meter   *meter
	log     *slog.Logger

	// alone is locked while a message is handled by itself, so that a death has one
	// cause.
	alone sync.RWMutex

	mu      sync.Mutex
	running map[string]*logReader
}

func newLogGroup(rt *Runtime, service string, stage Stage) *logGroup {
	g := &logGroup{
		Log: stage.log, rt: rt, service: service, process: uuid.NewString(), log: logger(rt.log, service, stage.name),
		running: make(map[string]*logReader),
	}
	g.meter = rt.newMeter(service, stage.name, func() int { _, waiting := g.backlog(); return int(waiting) })
	return g
}

// run implements [runner].
func (g *logGroup) run(life lifetime) {
	var readers sync.WaitGroup
	ticker := time.NewTicker(shareBeat)
	defer ticker.Stop()
	for beat := 0; life.stop.Err() == nil; beat++ {
		g.share(life, &readers, beat%compareBeats == 0)
		select {
		case <-ticker.C:
		case <-life.stop.Done():
		}
	}
	readers.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(life.handlers), grace)
	defer cancel()
	if _, err := g.Shares.Share(ctx, g.Name, Readers(g.Partitions), g.process, 0); err != nil {
		g.log.Debug("give up the readers", "error", err) // their time runs out
	}
}

// share starts the readers that have become this process's and stops those that
// are not any more. While the store does not answer, all go on as they are.
func (g *logGroup) share(life lifetime, readers *sync.WaitGroup, compare bool) {
	ctx, cancel := context.WithTimeout(life.stop, shareBeat)
	defer cancel()
	mine, err := g.Shares.Share(ctx, g.Name, Readers(g.Partitions), g.process, shareLife)
	if err == nil && compare {
		err = g.compare(ctx)
	}
	if err != nil {
		if life.stop.Err() == nil {
			g.log.Warn("share the readers", "error", err)
		}
		return
	}
	if g.Shared != nil {
		g.Shared(mine)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, r := range g.running {
		if !slices.Contains(mine, name) {
			r.cancel()
			delete(g.running, name)
		}
	}
	for _, p := range g.Partitions {
		if !slices.Contains(mine, p.Reader) || g.running[p.Reader] != nil {
			continue
		}
		r := &logReader{logGroup: g, part: p, handlers: life.handlers}
		r.stop, r.cancel = context.WithCancel(life.stop)
		g.running[p.Reader] = r
		readers.Go(r.run)
	}
}

// compare restarts readers whose stored cursor went back: the store lost writes.
func (g *logGroup) compare(ctx context.Context) error {
	g.mu.Lock()
	running := slices.Collect(maps.Values(g.running))
	g.mu.Unlock()
	names, wrote := make([]string, len(running)), make([]uint64, len(running))
	for i, r := range running {
		names[i], wrote[i] = r.part.Reader, r.wrote.Load() // before the store is asked
	}
	if len(names) == 0 {
		return nil
	}
	stored, err := g.Cursors.ReadCursors(ctx, names...)
	if err != nil {
		return err
	}
	for i, r := range running {
		if stored[i].Sequence < wrote[i] {
			g.log.Warn("the store lost its cursor", "reader", names[i], "read_up_to", wrote[i], "stored_up_to", stored[i].Sequence)
			r.again.Store(true)
		}
	}
	return nil
}

// progress implements [advancing], of the readers of this process.
func (g *logGroup) progress(context.Context) (Progress, error) { //nolint:unparam // others ask the server
	did := g.meter.snapshot()
	pending, waiting := g.backlog()
	return Progress{
		Service: g.service, Stage: g.Name, Stream: g.Stream, Consumer: g.Name, Pending: pending, Unacked: waiting,
		Runnable: pending, Delayed: waiting, Passed: did.Handled + did.Buried,
	}, nil
}

// backlog counts the messages that the readers of this process have yet to read, and
// those that they hold.
func (g *logGroup) backlog() (pending, waiting uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.running {
		pending += r.pending.Load()
		waiting += uint64(r.waiting.Load())
	}
	return pending, waiting
}
