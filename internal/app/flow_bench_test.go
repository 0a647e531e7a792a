package app

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// flowSize episodes are published by one run of BenchmarkFlow.
const flowSize = 8000

// BenchmarkFlow publishes to a whole Palimpsest in this process, over loopback as
// anyone would, and waits until all of it is consolidated: what profiles of a
// flood are taken from. The time of the processors is that of the process and the
// publisher together, and is the figure that other work on the machine disturbs
// least. Each run does a fixed amount of work, whatever b.N.
func BenchmarkFlow(b *testing.B) {
	turn := rules.Shipped()[:1]
	if turn[0].ID != memory.RuleTurn {
		b.Fatalf("the first rule is %s", turn[0].ID)
	}
	for _, c := range []struct {
		name   string
		rules  []memory.Rule
		scopes int
	}{
		{"scopes=200/rules=turn", turn, 200},
		{"scopes=200/rules=all", rules.Shipped(), 200},
		{"scopes=1/rules=turn", turn, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := loopback(b.TempDir())
			cfg.Scheduler.Rules = c.rules
			flow(b, cfg, c.scopes)
		})
	}
}

func flow(b *testing.B, cfg Config, scopes int) {
	b.Helper()
	h, stop := openWith(b, cfg)
	defer stop()
	conn, err := nats.Connect(h.streams.ClientURL())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(flowSize))
	if err != nil {
		b.Fatal(err)
	}
	used, began := processorTime(b), time.Now()
	acks := make([]jetstream.PubAckFuture, flowSize)
	for n := range acks {
		body := fmt.Appendf(nil, `{"role":"user","content":"I like board game number %d."}`, n)
		if acks[n], err = js.PublishAsync(events.EpisodeSubject(flowScope(n%scopes)), body); err != nil {
			b.Fatal(err)
		}
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			b.Fatal(err)
		}
	}
	b.ReportMetric(flowSize/time.Since(began).Seconds(), "accepted/s")
	effects := uint64(0)
	for n := range scopes {
		effects += reachedBy(b, h, flowScope(n).Fact(), uint64(flowSize/scopes)).Revision
	}
	b.ReportMetric(flowSize/time.Since(began).Seconds(), "known/s")
	b.ReportMetric(float64((processorTime(b)-used).Microseconds())/flowSize, "cpu-µs/episode")
	b.ReportMetric(flowSize/float64(effects), "episodes/effect")
}

func flowScope(n int) scope.Scope {
	return scope.Scope{Project: scope.DefaultProject, User: fmt.Sprintf("flow%03d", n), Session: "s1"}
}

// processorTime is what this process has used of all processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
