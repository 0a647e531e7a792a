package pipeline

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// crashEnv makes the test binary a worker whose handlers kill their process when
// they meet a "deadly" message; it holds the server's address.
const crashEnv = "PIPELINE_TEST_CRASH"

// killed is the exit code of a worker that its handler killed.
const killed = 9

// crashChild works until a handler kills it, or its parent does.
func crashChild() {
	conn, err := nats.Connect(os.Getenv(crashEnv))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	js, _ := jetstream.New(conn)
	rt, err := New(Config{MaxDeliveries: 16, RetryBase: 10 * time.Millisecond}, Deps{JS: js, Conn: conn})
	if err != nil {
		os.Exit(2)
	}
	_ = rt.Run(context.Background(), service{name: "worker", stages: []Stage{
		Consume("EPISODES", "episodes", On(func(ctx context.Context, in episode) ([]events.Payload, error) {
			switch in.Data.Content {
			case "deadly":
				os.Exit(killed)
			case "slow": // under way whenever another stage kills the process
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
				}
			}
			return nil, ctx.Err()
		})),
		Consume("TICKS", "ticks", On(func(_ context.Context, in events.Event[events.TickIssued]) ([]events.Payload, error) {
			if in.Data.Rule == "deadly" {
				os.Exit(killed)
			}
			return nil, nil
		})),
	}})
	os.Exit(0)
}

// A message that kills its process again and again is buried, and none of those
// that died with it is, whichever stage they are in.
func TestHandlerThatKillsTheProcess(t *testing.T) {
	t.Parallel()
	quick := func(c *jetstream.ConsumerConfig) { c.AckWait = 2 * time.Second }
	for name, tc := range map[string]struct {
		kill   func(*bench)
		stream string
	}{
		"same stage":  {func(b *bench) { b.say(user("eve"), "deadly") }, "EPISODES"},
		"other stage": {func(b *bench) { b.publish(tickOf(user("eve"), "deadly")) }, "TICKS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.standard(quick)
			tc.kill(b)
			for _, who := range []string{"ann", "bob", "eve"} {
				b.tell(user(who), who, "slow")
			}
			deaths := b.dieUntil(func() bool { return b.lettersHeld() > 0 })
			letter := b.deadLetters(1)[0]
			if letter.Code != events.CodePoison || letter.Stream != tc.stream || letter.Sequence != 1 {
				t.Errorf("letter %+v", letter)
			}
			if deaths < 16 {
				t.Errorf("buried after %d deaths", deaths)
			}
			b.start(quickConfig(), onEpisode(func(context.Context, episode) ([]events.Payload, error) { return nil, nil }))
			b.settled("EPISODES", "episodes")
			b.deadLetters(1)
		})
	}
}

// dieUntil runs workers, each until it dies, until done, and counts the deaths.
func (b *bench) dieUntil(done func() bool) (deaths int) { return b.childrenUntil(nil, done) }

// childrenUntil is [bench.dieUntil] for children with an environment of their own.
func (b *bench) childrenUntil(env []string, done func() bool) (deaths int) {
	b.tb.Helper()
	const mostDeaths = 40
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for ; deaths < mostDeaths; deaths++ {
		child := exec.Command(os.Args[0])
		child.Env = append(append(os.Environ(), crashEnv+"="+b.server.ClientURL()), env...)
		if err := child.Start(); err != nil {
			b.tb.Fatal(err)
		}
		dead := make(chan error, 1)
		go func() { dead <- child.Wait() }()
		deadline := time.After(patience)
		for alive := true; alive; {
			select {
			case <-dead:
				if code := child.ProcessState.ExitCode(); code != killed {
					b.tb.Fatalf("child: exit code %d", code)
				}
				alive = false
			case <-poll.C:
				if !done() {
					continue
				}
				_ = child.Process.Kill()
				<-dead
				return deaths
			case <-deadline:
				_ = child.Process.Kill()
				<-dead
				b.tb.Fatalf("nothing happens after %d deaths", deaths)
			}
		}
	}
	b.tb.Fatalf("still dies after %d deaths", deaths)
	return deaths
}

func (b *bench) lettersHeld() uint64 {
	b.tb.Helper()
	n, err := b.letters().Count(b.context())
	if err != nil {
		b.tb.Fatal(err)
	}
	return n
}
