package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const (
	// lagLimit is the largest lag that counts; longer ones count as lagLimit. Beyond
	// it the machine is overloaded, and the length of the queue means nothing.
	lagLimit = 20 * time.Second
	// probePause keeps a probe from being the load; it is part of the lags.
	probePause   = 3 * time.Millisecond
	introduction = `{"role":"user","content":"Hello, Nora here. I'm a hydrologist at Fenwick Labs."}`
)

// lagKinds are the kinds of result that a message is found as, with the 99th
// percentile that each should stay under, in milliseconds.
var lagKinds = []struct {
	name   string
	target float64
}{{"text", 50}, {"vector", 200}, {"fact", 250}}

// measureLag measures the time from a publish until a search over HTTP finds the
// message, while other clients publish messages of other users.
func measureLag(ctx context.Context, b *bench) ([]Figure, error) {
	rounds := make([][][3]float64, 0, b.Rounds)
	err := b.with(ctx, PeerWhole, func(p *peer) error {
		pr, err := newProber(p)
		if err != nil {
			return err
		}
		defer pr.conn.Close()
		ctx, cancel := context.WithCancel(ctx)
		var others sync.WaitGroup
		others.Go(func() { pr.others(ctx, b.pace) })
		defer others.Wait()
		defer cancel()
		began := time.Now()
		for r := range b.Rounds {
			var round [][3]float64
			for n := range b.probes {
				lags, err := pr.find(ctx, fmt.Sprintf("probe%03d-%03d", r, n))
				if err != nil {
					return err
				}
				round = append(round, lags)
				if time.Since(began) > budget {
					break
				}
			}
			if rounds = append(rounds, round); time.Since(began) > budget {
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var figures []Figure
	for kind, k := range lagKinds {
		for _, p := range []float64{50, 95, 99} {
			f := Figure{Name: fmt.Sprintf("lag.%s.p%.0f", k.name, p), Better: Lower}
			var values []float64
			for _, round := range rounds {
				var lags []float64
				for _, lag := range round {
					lags = append(lags, lag[kind])
				}
				slices.Sort(lags)
				values = append(values, percentile(lags, p))
			}
			f.Spread = spread(unitMillis, values)
			if p == 99 {
				f.Target = k.target
			}
			figures = append(figures, f)
		}
	}
	return figures, nil
}

// prober publishes and searches.
type prober struct {
	conn *nats.Conn
	js   jetstream.JetStream
	api  *client.Client
}

func newProber(p *peer) (*prober, error) {
	c, err := client.New(p.HTTP)
	if err != nil {
		return nil, err
	}
	conn, err := nats.Connect(p.NATS)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &prober{conn, js, c}, nil
}

// others publishes at a pace, in messages a second, until ctx ends.
func (p *prober) others(ctx context.Context, pace int) {
	tick := time.NewTicker(time.Second / time.Duration(pace))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			// No check depends on these messages, so one may be lost.
			_, _ = p.js.PublishAsync(subjectOf(fmt.Sprintf("other%06d", n)), []byte(introduction))
		case <-ctx.Done():
			return
		}
	}
}

func subjectOf(user string) string {
	return events.EpisodeSubject(scope.Scope{Project: scope.DefaultProject, User: user, Agent: "assistant", Session: "s1"})
}

// find returns after how many milliseconds an introduction was found as each of
// lagKinds.
func (p *prober) find(ctx context.Context, user string) (lags [3]float64, err error) {
	q := api.Search{Selector: api.Selector{User: &user}, Text: "hydrologist", Explain: true, Limit: 20}
	began := time.Now()
	if _, err := p.js.PublishAsync(subjectOf(user), []byte(introduction)); err != nil {
		return lags, fmt.Errorf("publish: %w", err)
	}
	limit, tick := time.After(lagLimit), time.NewTicker(probePause)
	defer tick.Stop()
	for {
		found, err := p.api.Search(ctx, q)
		if err != nil {
			return lags, err
		}
		for k, seen := range channels(found) {
			if seen && lags[k] == 0 {
				lags[k] = float64(time.Since(began).Microseconds()) / 1000
			}
		}
		if !slices.Contains(lags[:], 0) {
			return lags, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return lags, ctx.Err()
		case <-limit:
			for k, lag := range lags {
				if lag == 0 {
					lags[k] = float64(lagLimit.Milliseconds())
				}
			}
			return lags, nil
		}
	}
}

// channels reports which of lagKinds a search has found.
func channels(found api.Found) (seen [3]bool) {
	for _, hit := range found.Results {
		if hit.Type == "fact" {
			seen[2] = true
			continue
		}
		for name := range hit.Channels {
			seen[0] = seen[0] || strings.Contains(name, "text")
			seen[1] = seen[1] || strings.Contains(name, "vector")
		}
	}
	return seen
}
