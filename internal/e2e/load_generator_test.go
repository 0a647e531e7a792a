package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// pace is how often each user of a load generator speaks.
	pace = 2 * time.Second
	// longest is how many turns one has at most. Of the hundredth the rule sleep
	// makes a range that ends wherever the others are by then.
	longest = 99
)

// loadGenerator is people who speak at their pace, whatever becomes of the engines: who
// gets an error says it again, and then what is overdue.
type loadGenerator struct {
	c       *cluster
	scripts []*script

	mu           sync.Mutex
	acknowledged int
	refused      int           // errors that publishers got
	slowest      time.Duration // acknowledgement
}

// gather makes a load generator that says so many episodes a second.
func gather(c *cluster, load int) *loadGenerator {
	return &loadGenerator{c: c, scripts: scripts(load*int(pace/time.Second), longest)}
}

// told counts what was acknowledged by now, and the errors.
func (p *loadGenerator) told() (acknowledged, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acknowledged, p.refused
}

// hear waits until publishers have had so many more answers.
func (p *loadGenerator) hear(answers int) {
	p.c.t.Helper()
	acknowledged, refused := p.told()
	before := acknowledged + refused
	eventually(p.c.t, "publishers are answered", func() error {
		if acknowledged, refused := p.told(); acknowledged+refused < before+answers {
			return fmt.Errorf("%d of %d answers", acknowledged+refused-before, answers)
		}
		return nil
	})
}

// calm is what was said, for others to say.
func (p *loadGenerator) calm() []*script {
	calm := make([]*script, len(p.scripts))
	for n, s := range p.scripts {
		s.turns = s.turns[:s.next]
		calm[n] = &script{who: s.who, turns: s.turns}
	}
	return calm
}

// speech is a load generator that speaks.
type speech struct {
	*loadGenerator
	stop context.CancelFunc
	all  sync.WaitGroup
}

// speak lets everybody speak until the end of the speech.
func (p *loadGenerator) speak() *speech {
	ctx, stop := context.WithCancel(p.c.t.Context())
	s := &speech{loadGenerator: p, stop: stop}
	for n, who := range p.scripts {
		s.all.Go(func() { s.talk(ctx, who, pace*time.Duration(n)/time.Duration(len(p.scripts))) })
	}
	return s
}

// end lets everybody say what is overdue.
func (s *speech) end() {
	s.stop()
	s.all.Wait()
}

// talk says what is due since it began, the first after a pause.
func (s *speech) talk(ctx context.Context, who *script, pause time.Duration) {
	first, began := who.next, time.Now()
	due, over := first, ctx.Done()
	for {
		passed := time.Since(began) + pace - pause
		if over != nil {
			due = min(first+int(passed/pace), len(who.turns))
		}
		for who.next < due && s.say(who) {
		}
		if over == nil && who.next == due {
			return
		}
		select {
		case <-time.After(pace - passed%pace):
		case <-over:
			over = nil
		}
	}
}

// say publishes the next message, and reports whether it was acknowledged.
func (s *speech) say(who *script) bool {
	part := &script{who: who.who, turns: who.turns[:who.next+1], next: who.next}
	asked := time.Now()
	err := part.tell(s.c.t.Context(), s.c.instance, nil)
	took := time.Since(asked)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowest = max(s.slowest, took)
	if err != nil {
		s.refused++
		return false
	}
	s.acknowledged++
	who.next++
	return true
}
