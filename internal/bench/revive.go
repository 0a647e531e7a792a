package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"palimpsest/pkg/client"
)

const (
	// reviveTarget is in milliseconds.
	reviveTarget = 1_500
	// reviveBurst is how many messages of one user are under way at a kill.
	reviveBurst = 200
	// reviveMoments divides the burst: kills come after different parts of it are
	// consolidated.
	reviveMoments = 5
)

// measureRevive kills a process (-9) while it processes the messages of one user, and
// starts it again over the same files. It measures from the moment when the process
// is ready until a new message is a fact: of the same user, whose earlier messages
// come first, and of another user, by turns.
func measureRevive(ctx context.Context, b *bench) ([]Figure, error) {
	p, err := b.start(ctx, PeerWhole)
	if err != nil {
		return nil, err
	}
	dir := p.dir
	defer os.RemoveAll(dir) //nolint:errcheck // the directory above is removed too
	var lags [2][]float64   // of the same user, and of another one
	var starts []float64
	for kill := range b.kills {
		if err = p.strike(ctx, kill); err != nil {
			break
		}
		began := time.Now()
		if p, err = b.startOver(ctx, PeerWhole, dir); err != nil {
			break
		}
		if err = p.ready(ctx); err != nil {
			break
		}
		starts = append(starts, float64(time.Since(began).Microseconds())/1000)
		lag, failed := p.revived(ctx, kill)
		if err = failed; err != nil {
			break
		}
		lags[kill%2] = append(lags[kill%2], lag)
	}
	if p != nil {
		p.kill()
	}
	if err != nil {
		return nil, err
	}
	all := slices.Concat(lags[0], lags[1])
	return []Figure{
		{Name: "revive.fact.worst", Spread: spread(unitMillis, []float64{slices.Max(all)}), Better: Lower, Target: reviveTarget},
		{Name: "revive.fact.same-user", Spread: spread(unitMillis, lags[0]), Better: Lower},
		{Name: "revive.fact.other-user", Spread: spread(unitMillis, lags[1]), Better: Lower},
		{Name: "revive.ready", Spread: spread(unitMillis, starts), Better: Lower},
	}, nil
}

// strike kills the process while many clients add messages of one user, each of which
// waits until its message is known before it sends the next.
func (p *peer) strike(ctx context.Context, kill int) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c, err := client.New(p.HTTP, client.HTTP(&http.Client{Transport: transport}))
	if err != nil {
		return err
	}
	var published, known atomic.Int64
	var clients sync.WaitGroup
	enough := make(chan struct{}, 1)
	for range reviveBurst {
		clients.Go(func() {
			for {
				m := say("revive", kill, sentence(int(published.Add(1))))
				m.record.Wait = true
				if _, err := c.Record(ctx, m.record, ""); err != nil {
					return // the process is dead
				}
				if known.Add(1) == int64(reviveBurst*(1+kill%reviveMoments)) {
					enough <- struct{}{}
				}
			}
		})
	}
	select {
	case <-enough:
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(patience):
		err = fmt.Errorf("%d messages are known after %v", known.Load(), patience)
	}
	p.kill()
	clients.Wait()
	return err
}

// revived returns after how many milliseconds a new message is a fact.
func (p *peer) revived(ctx context.Context, kill int) (float64, error) {
	c, err := client.New(p.HTTP)
	if err != nil {
		return 0, err
	}
	m := say("revive", kill, sentence(names)) // new to the store
	if kill%2 == 1 {
		m = say("bystander", kill, sentence(0))
	}
	m.record.Wait = true
	began := time.Now()
	answer, err := c.Record(ctx, m.record, "")
	lag := float64(time.Since(began).Microseconds()) / 1000
	if err != nil {
		return lag, fmt.Errorf("add after kill %d: %w", kill+1, err)
	}
	if len(answer.Results) == 0 {
		return lag, errors.New("no fact came of a statement")
	}
	return lag, nil
}
