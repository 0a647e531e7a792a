package broker

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// guardSpace looks at the disk until the function that it returns is called.
//
// New messages are refused, with the stream's error, while no more than the
// reserve is free: the size limit of the streams follows the free space, also where
// other programs use it. If the disk runs full all the same, a stream may have met a
// failed write, after which it accepts nothing; once there is room again, the server
// is restarted in place.
func (e *Embedded) guardSpace() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(e.cfg.SpaceInterval)
		defer tick.Stop()
		broken := false
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				broken = e.guardOnce(ctx, broken)
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// guardOnce adjusts the limit, and returns whether the server needs a restart
// that has not been possible yet.
func (e *Embedded) guardOnce(ctx context.Context, broken bool) bool {
	if !e.life.TryLock() {
		return broken // another goroutine starts or stops the server
	}
	defer e.life.Unlock()
	was := *e.space.Load()
	if err := e.look(); err != nil {
		e.cfg.Logger.Warn("measure the free space", "dir", e.cfg.Dir, "error", err)
		return broken
	}
	now := *e.space.Load()
	if now.low() != was.low() {
		e.cfg.Logger.Warn("disk space", "refusing", now.low(), "free_bytes", now.Free, "reserve_bytes", now.reserve())
	}
	r := e.current.Load()
	broken = broken || now.starved() || r == nil || !r.srv.JetStreamEnabled()
	if broken && !now.low() {
		e.cfg.Logger.Warn("restarting the broker: the disk has space again", "free_bytes", now.Free)
		restart, cancel := context.WithTimeout(ctx, startLimit)
		defer cancel()
		if err := e.restart(restart); err != nil {
			e.cfg.Logger.Error("restart the broker", "error", err)
			return true
		}
		return false
	}
	if r != nil && r.srv.JetStreamEnabled() {
		if err := e.limit(r); err != nil {
			e.cfg.Logger.Warn("limit the streams", "error", err)
		}
	}
	return broken
}

// look measures the disk.
func (e *Embedded) look() error {
	space, err := e.cfg.Space(e.cfg.Dir)
	if err != nil {
		return err
	}
	e.space.Store(&space)
	return nil
}

// limit bounds the streams by the space that was last seen.
func (e *Embedded) limit(r *running) error {
	used := int64(r.own.JetStreamUsage().Store)
	return r.own.UpdateJetStreamLimits(limits(e.space.Load().limit(used)))
}

// limits are those of our account; -1 bounds nothing.
func limits(maxStore int64) map[string]server.JetStreamAccountLimits {
	return map[string]server.JetStreamAccountLimits{"": {
		MaxMemory:            -1,
		MaxStore:             maxStore,
		MaxStreams:           -1,
		MaxConsumers:         -1,
		MaxAckPending:        -1,
		MemoryMaxStreamBytes: -1,
		StoreMaxStreamBytes:  -1,
	}}
}
