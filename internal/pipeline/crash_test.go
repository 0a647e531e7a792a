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

// crashEnv makes the test binary a worker whose handler kills its process when
// it meets the content "deadly"; it holds the server's address.
const crashEnv = "PIPELINE_TEST_CRASH"

// crashChild works until it has drained nothing for a while, or dies.
func crashChild() {
	conn, err := nats.Connect(os.Getenv(crashEnv))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	js, _ := jetstream.New(conn)
	rt, err := New(Config{MaxDeliveries: 3}, Deps{JS: js, Conn: conn})
	if err != nil {
		os.Exit(2)
	}
	stage := Consume("episodes", On(func(_ context.Context, in events.Event[events.EpisodeRecorded]) ([]events.Payload, error) {
		if in.Data.Content == "deadly" {
			os.Exit(9)
		}
		return nil, nil
	}))
	// The parent ends this process.
	_ = rt.Run(context.Background(), service{name: "worker", stages: []Stage{stage}})
	os.Exit(0)
}

func TestHandlerThatKillsTheProcess(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][]func(*jetstream.ConsumerConfig){"free": nil, "pinned": {pinned}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.standard(append(change, func(c *jetstream.ConsumerConfig) {
				if c.PriorityPolicy == jetstream.PriorityPolicyNone {
					c.AckWait = 2 * time.Second
				}
			})...)
			b.say(user("eve"), "deadly")
			deaths := 0
			for range 3 {
				child := exec.Command(os.Args[0])
				child.Env = append(os.Environ(), crashEnv+"="+b.server.ClientURL())
				if err := child.Run(); err == nil || child.ProcessState.ExitCode() != 9 {
					t.Fatalf("child: %v", err)
				}
				deaths++
			}
			handled := make(chan string, 10)
			b.start(Config{MaxDeliveries: 3}, Consume("episodes", On(func(_ context.Context, in events.Event[events.EpisodeRecorded]) ([]events.Payload, error) {
				handled <- in.Data.Content
				return nil, nil
			})))
			letter := b.letters(1)[0]
			if letter.Code != events.CodePoison || letter.CausationID != "deadly" || deaths != 3 {
				t.Errorf("letter %+v after %d deaths", letter, deaths)
			}
			b.say(user("eve"), "harmless")
			if got := await(t, handled); got != "harmless" {
				t.Errorf("handled %q", got)
			}
			b.settled("EPISODES", "episodes")
		})
	}
}
