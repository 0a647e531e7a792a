package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"palimpsest/internal/bench/usage"
	"palimpsest/pkg/client"
)

// The targets of an empty process, in MiB and ms: 85 MB with the semantic table.
const (
	idleTarget   = 81
	binaryTarget = 75
	readyTarget  = 2_000
)

// measureIdle measures an empty process: the time until it is ready, its memory
// once it is idle, and the size of its binary.
func measureIdle(ctx context.Context, b *bench) ([]Figure, error) {
	var ready, resident []float64
	err := b.rounds(ctx, func(ctx context.Context) error {
		began := time.Now()
		return b.with(ctx, PeerWhole, func(p *peer) error {
			if err := p.ready(ctx); err != nil {
				return err
			}
			ready = append(ready, float64(time.Since(began).Microseconds())/1000)
			select {
			case <-time.After(b.settle):
			case <-ctx.Done():
				return ctx.Err()
			}
			resident = append(resident, usage.ResidentMiB(p.command.Process.Pid))
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(b.Program)
	if err != nil {
		return nil, fmt.Errorf("measure binary: %w", err)
	}
	figures := []Figure{
		{Name: "idle.ready", Spread: spread(unitMillis, ready), Better: Lower, Target: readyTarget},
		{Name: "idle.binary", Spread: spread(unitMiB, []float64{float64(info.Size()) / (1 << 20)}), Better: Lower, Target: binaryTarget},
	}
	if slices.Min(resident) > 0 { // where the system tells
		figures = append(figures, Figure{Name: "idle.memory", Spread: spread(unitMiB, resident), Better: Lower, Target: idleTarget})
	}
	return figures, nil
}

// ready waits until /readyz is green.
func (p *peer) ready(ctx context.Context) error {
	c, err := client.New(p.HTTP)
	if err != nil {
		return err
	}
	limit, tick := time.After(patience), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		_, err := c.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return fmt.Errorf("not ready within %v: %w", patience, err)
		}
	}
}
