package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

const (
	stormUsers = 80
	// stormBystander is a project whose only user has no backlog of its own.
	stormBystander = "bystander"
	// stormPace is how long a user waits between two messages.
	stormPace = 200 * time.Millisecond
	// stormLife is the least time that a process lives before it is killed. The kills
	// come up to stormSpan later.
	stormLife, stormSpan = time.Second, 2 * time.Second
	// stormTarget is in milliseconds.
	stormTarget = 10_000
)

// measureStorm kills a process (-9) again and again, 1 to 3 s after it is ready, while
// users add messages over HTTP. It measures from the moment when the last process is
// ready until all is consolidated. No message kills a process, so none may be handled
// by itself as a suspect, and none may be buried. One more user, of another project,
// must never be answered with 429.
func measureStorm(ctx context.Context, b *bench) ([]Figure, error) {
	dir, err := b.fresh(PeerWhole)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the directory above is removed too
	s := &storm{}
	var p *peer
	for kill := range b.storms + 1 {
		if p, err = b.startOver(ctx, PeerWhole, dir); err == nil {
			err = p.ready(ctx)
		}
		if err != nil || kill == b.storms {
			break
		}
		s.blow(ctx, p, stormLife+stormSpan*time.Duration(kill%5)/4)
		s.trials += p.output.trials()
	}
	if p != nil {
		defer p.kill()
	}
	if err != nil {
		return nil, err
	}
	if n := s.bystander.refused.Load(); n > 0 {
		return nil, fmt.Errorf("a project without a backlog got 429 %d times", n)
	}
	began := time.Now()
	err = p.account(ctx, func(a api.Account) bool {
		return a.Accepted >= uint64(s.users.added.Load()) && a.Consolidated == a.Accepted
	})
	took := float64(time.Since(began).Microseconds()) / 1000
	if err != nil {
		return nil, fmt.Errorf("await consolidation: %w", err)
	}
	if s.trials += p.output.trials(); s.trials > 0 {
		return nil, fmt.Errorf("after %d kills %d readers handled innocent messages by themselves", b.storms, s.trials)
	}
	return []Figure{
		{Name: "storm.drained", Spread: spread(unitMillis, []float64{took}), Better: Lower, Target: stormTarget},
		{Name: "storm.added", Spread: spread(unitMessages, []float64{float64(s.users.added.Load()) / s.lived.Seconds()}), Better: Higher},
		{Name: "storm.refused", Spread: spread(unitMessages, []float64{float64(s.users.refused.Load()) / s.lived.Seconds()}), Better: Lower},
	}, nil
}

// answers counts messages that were acknowledged, and answered with 429.
type answers struct{ added, refused atomic.Int64 }

// storm counts over all processes.
type storm struct {
	users, bystander answers
	published        atomic.Int64 // messages, of all
	trials           int
	lived            time.Duration
}

// blow has users add messages for a while, and kills the process.
func (s *storm) blow(ctx context.Context, p *peer, life time.Duration) {
	transport := &http.Transport{MaxIdleConnsPerHost: stormUsers}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, life)
	defer cancel()
	var users sync.WaitGroup
	for user := range stormUsers {
		users.Go(func() { s.user(ctx, p, transport, scope.DefaultProject, user, &s.users) })
	}
	users.Go(func() { s.user(ctx, p, transport, stormBystander, stormUsers, &s.bystander) })
	<-ctx.Done()
	p.kill()
	users.Wait()
	s.lived += life
}

// user adds messages to a project until the process is dead. It counts the
// answers.
func (s *storm) user(ctx context.Context, p *peer, transport http.RoundTripper, project string, user int, count *answers) {
	c, err := client.New(p.HTTP, client.HTTP(&http.Client{Transport: transport}), client.Project(project))
	if err != nil {
		return
	}
	tick := time.NewTicker(stormPace)
	defer tick.Stop()
	for {
		m := say("storm", user, sentence(int(s.published.Add(1))))
		_, err := c.Record(ctx, m.record, "")
		var problem *api.Problem
		switch {
		case err == nil:
			count.added.Add(1)
		case errors.As(err, &problem) && problem.Status == http.StatusTooManyRequests:
			count.refused.Add(1)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
