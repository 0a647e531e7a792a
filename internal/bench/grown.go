package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

// grownTarget is how many times as long a user with grownRows[1] rows may wait for a
// fact as one with grownRows[0].
const grownTarget = 1.5

// measureGrown measures from an add over HTTP to the answer that names its fact, of
// one user with few messages and of one with many. The two are in two processes and
// take turns, message by message.
func measureGrown(ctx context.Context, b *bench) ([]Figure, error) {
	var waits [2]pairOfWaits
	err := b.withGrown(ctx, b.grown[0], func(few *grownUser) error {
		return b.withGrown(ctx, b.grown[1], func(many *grownUser) error {
			return b.rounds(ctx, func(ctx context.Context) error {
				var lags [2][]float64
				for range b.probes {
					for i, u := range []*grownUser{few, many} {
						lag, err := u.say(ctx)
						if err != nil {
							return err
						}
						lags[i] = append(lags[i], lag)
					}
				}
				for i := range lags {
					slices.Sort(lags[i])
					waits[i].p50 = append(waits[i].p50, percentile(lags[i], 50))
					waits[i].p95 = append(waits[i].p95, percentile(lags[i], 95))
				}
				return nil
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return []Figure{
		pair{waits[1].p50, waits[0].p50}.over("grown.fact.p50", unitMillis, Lower, grownTarget),
		pair{waits[1].p95, waits[0].p95}.over("grown.fact.p95", unitMillis, Lower, 0),
	}, nil
}

// pairOfWaits are percentiles of each round, in milliseconds.
type pairOfWaits struct{ p50, p95 []float64 }

// grownUser is the only user of a process.
type grownUser struct {
	api       *client.Client
	published int
}

// withGrown runs f against a process with n sentences of its only user.
func (b *bench) withGrown(ctx context.Context, n int, f func(*grownUser) error) error {
	return b.with(ctx, PeerWhole, func(p *peer) error {
		messages := make([]message, n)
		for i := range messages {
			messages[i] = say("grown", 0, sentence(i))
		}
		if _, err := p.publish(ctx, anonymous, messages, (*publisher).windowed); err != nil {
			return err
		}
		if err := p.account(ctx, func(a api.Account) bool { return a.Consolidated == uint64(n) }); err != nil {
			return fmt.Errorf("await consolidation: %w", err)
		}
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		c, err := client.New(p.HTTP, client.HTTP(&http.Client{Transport: transport}))
		if err != nil {
			return err
		}
		return f(&grownUser{c, n})
	})
}

// sentence is the nth of a user, unlike all others.
func sentence(n int) string {
	about := name(n)
	if n >= names {
		about += " " + name(n-names+1)
	}
	return fmt.Sprintf(statements[n%len(statements)], about)
}

// say adds a sentence and returns after how many milliseconds its fact was known.
func (u *grownUser) say(ctx context.Context) (float64, error) {
	m := say("grown", 0, sentence(u.published))
	u.published++
	m.record.Wait = true
	began := time.Now()
	answer, err := u.api.Record(ctx, m.record, "")
	lag := float64(time.Since(began).Microseconds()) / 1000
	if err == nil && len(answer.Results) == 0 {
		err = errors.New("no fact came of a statement")
	}
	return lag, err
}
