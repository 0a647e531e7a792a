package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"palimpsest/pkg/client"
)

// The load of measureWait: adds a second, and the targets of their latency in
// milliseconds.
const (
	waitPace       = 50
	waitTarget     = 15
	waitTailTarget = 60
	// waitLongest is how many seconds an add waits at most.
	waitLongest = 120
)

// measureWait measures adds over HTTP that wait for their facts: at a pace that does not
// depend on the answers, and all at once. An add that is not answered with a fact is an
// error.
func measureWait(ctx context.Context, b *bench) ([]Figure, error) {
	var p50, p99, last []float64
	err := b.with(ctx, PeerWhole, func(p *peer) error {
		transport := &http.Transport{MaxIdleConnsPerHost: b.crowd}
		defer transport.CloseIdleConnections()
		c, err := client.New(p.HTTP, client.HTTP(&http.Client{Transport: transport}))
		if err != nil {
			return err
		}
		added := 0
		return b.rounds(ctx, func(ctx context.Context) error {
			paced, err := waitAll(ctx, c, "paced", added, b.waits, time.Second/waitPace)
			if err != nil {
				return err
			}
			crowd, err := waitAll(ctx, c, "crowd", added, b.crowd, 0)
			if err != nil {
				return err
			}
			added += max(b.waits, b.crowd)
			p50, p99 = append(p50, percentile(paced, 50)), append(p99, percentile(paced, 99))
			last = append(last, crowd[len(crowd)-1])
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return []Figure{
		{Name: "wait.fact.p50", Spread: spread(unitMillis, p50), Better: Lower, Target: waitTarget},
		{Name: "wait.fact.p99", Spread: spread(unitMillis, p99), Better: Lower, Target: waitTailTarget},
		{Name: "wait.crowd.last", Spread: spread(unitMillis, last), Better: Lower},
	}, nil
}

// waitAll adds n statements of many users, each pace after the one before whether that
// is answered or not, and returns the ascending latencies in milliseconds. They count
// from when the add was due.
func waitAll(ctx context.Context, c *client.Client, group string, added, n int, pace time.Duration) ([]float64, error) {
	latencies, failed := make([]float64, n), make([]error, n)
	var adds sync.WaitGroup
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(i) * pace)
		if !sleep(ctx, time.Until(due)) {
			break
		}
		adds.Go(func() {
			m := say(group, (added+i)%floodScopes, sentence(added+i))
			m.record.Wait, m.record.Timeout = true, waitLongest
			answer, err := c.Record(ctx, m.record, "")
			latencies[i] = float64(time.Since(due).Microseconds()) / 1000
			if err == nil && (answer.Status != "done" || len(answer.Results) == 0) {
				err = fmt.Errorf("add %d is %s with %d results", i, answer.Status, len(answer.Results))
			}
			failed[i] = err
		})
	}
	adds.Wait()
	slices.Sort(latencies)
	return latencies, errors.Join(append(failed, ctx.Err())...)
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
