package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const patience = 20 * time.Second

// bench is a server with the streams that a test needs, and one connection.
type bench struct {
	tb     testing.TB
	server *server.Server
	dir    string
	conn   *nats.Conn
	js     jetstream.JetStream
	// tracer and observer are those of the runtimes; nil unless a test sets them.
	tracer   trace.Tracer
	observer Observer
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	b := &bench{tb: tb, dir: tb.TempDir()}
	b.startServer(-1)
	b.conn, b.js = b.connect()
	return b
}

func (b *bench) startServer(port int) {
	b.tb.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: b.dir, NoLog: true, NoSigs: true,
	})
	if err != nil {
		b.tb.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		b.tb.Fatal("server did not start")
	}
	b.server = s
	b.tb.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
}

func (b *bench) connect() (*nats.Conn, jetstream.JetStream) {
	b.tb.Helper()
	conn, err := nats.Connect(b.server.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncTimeout(5*time.Second))
	if err != nil {
		b.tb.Fatal(err)
	}
	return conn, js
}

func (b *bench) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.tb.Cleanup(cancel)
	return ctx
}

func (b *bench) stream(name string, retention jetstream.RetentionPolicy, subjects ...string) jetstream.Stream {
	b.tb.Helper()
	cfg := jetstream.StreamConfig{
		Name: name, Subjects: subjects, Retention: retention, Duplicates: 100 * time.Millisecond,
	}
	if name == "EPISODES" {
		cfg.SubjectTransform = &jetstream.SubjectTransformConfig{
			Source: "palimpsest.episodes.*.*.*.*", Destination: "palimpsest.episodes.{{partition(16,1,2,3)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}.{{wildcard(4)}}",
		}
	}
	if name == "DEADLETTER" {
		cfg.Duplicates = 2 * time.Minute
	}
	s, err := b.js.CreateStream(b.context(), cfg)
	if err != nil {
		b.tb.Fatal(err)
	}
	return s
}

func (b *bench) consumer(stream, name string, change ...func(*jetstream.ConsumerConfig)) {
	b.tb.Helper()
	cfg := jetstream.ConsumerConfig{
		Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 4 * time.Second, MaxDeliver: -1, MaxAckPending: 1000,
	}
	for _, f := range change {
		f(&cfg)
	}
	if _, err := b.js.CreateConsumer(b.context(), stream, cfg); err != nil {
		b.tb.Fatal(err)
	}
}

// standard declares EPISODES with one consumer of all, TICKS, CANDIDATES, STORED
// and DEADLETTER.
func (b *bench) standard(change ...func(*jetstream.ConsumerConfig)) {
	b.tb.Helper()
	b.stream("EPISODES", jetstream.LimitsPolicy, "palimpsest.episodes.*.*.*.*")
	b.stream("TICKS", jetstream.WorkQueuePolicy, "palimpsest.ticks.>")
	b.stream("CANDIDATES", jetstream.LimitsPolicy, "palimpsest.candidates.>")
	b.stream("STORED", jetstream.LimitsPolicy, "palimpsest.stored.>")
	b.stream("DEADLETTER", jetstream.LimitsPolicy, "palimpsest.deadletter.>")
	b.consumer("EPISODES", "episodes", change...)
	b.consumer("TICKS", "ticks")
}

// service is a hand-made [Service].
type service struct {
	name   string
	stages []Stage
}

func (s service) Name() string    { return s.name }
func (s service) Stages() []Stage { return s.stages }

func quickConfig() Config {
	return Config{RetryBase: time.Millisecond, RetryMax: 5 * time.Millisecond, DrainTimeout: 5 * time.Second}
}

func (b *bench) runtime(cfg Config, js jetstream.JetStream, conn *nats.Conn) *Runtime {
	b.tb.Helper()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("PIPELINE_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	rt, err := New(cfg, Deps{JS: js, Conn: conn, Logger: log, Tracer: b.tracer, Observer: b.observer})
	if err != nil {
		b.tb.Fatal(err)
	}
	return rt
}

// letters are the dead letters of the server.
func (b *bench) letters() *Letters {
	b.tb.Helper()
	return b.runtime(Config{}, b.js, b.conn).Letters()
}

// start runs stages until stop is called.
func (b *bench) start(cfg Config, stages ...Stage) (rt *Runtime, stop func()) {
	b.tb.Helper()
	return b.startOn(cfg, b.js, b.conn, stages...)
}

func (b *bench) startOn(cfg Config, js jetstream.JetStream, conn *nats.Conn, stages ...Stage) (rt *Runtime, stop func()) {
	b.tb.Helper()
	rt = b.runtime(cfg, js, conn)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, service{name: "worker", stages: stages}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				b.tb.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			b.tb.Error("Run did not return")
		}
	})
	b.tb.Cleanup(stop)
	return rt, stop
}

func user(name string) scope.Scope { return scope.Scope{Project: "p", User: name, Session: "s"} }

func said(of scope.Scope, content string) events.EpisodeRecorded {
	return events.EpisodeRecorded{Scope: of, Role: events.RoleUser, Content: content}
}

// say publishes an episode; its id is its content.
func (b *bench) say(of scope.Scope, content string) {
	b.tb.Helper()
	b.tell(of, content, content)
}

func (b *bench) tell(of scope.Scope, id, content string) {
	b.tb.Helper()
	pub := &broker{js: b.js, conn: b.conn, now: time.Now, timeout: patience}
	meta := events.Meta{ID: id, Source: "test"}
	if _, err := pub.Publish(b.context(), meta, said(of, content)); err != nil {
		b.tb.Fatal(err)
	}
}

func (b *bench) publish(p events.Payload) {
	b.tb.Helper()
	pub := &broker{js: b.js, conn: b.conn, now: time.Now, timeout: patience}
	if _, err := pub.Publish(b.context(), events.Meta{Source: "test"}, p); err != nil {
		b.tb.Fatal(err)
	}
}

func tick(of scope.Scope, to uint64) events.TickIssued {
	return events.TickIssued{Batch: events.Batch{
		Header: events.Header{Scope: of.Fact()}, Rule: "turn", Range: events.Range{From: 0, To: to}, Cause: events.CauseEvery,
	}}
}

func tickOf(of scope.Scope, rule string) events.TickIssued {
	t := tick(of, 7)
	t.Rule = rule
	return t
}

// letters waits for n dead letters.
func (b *bench) deadLetters(n int) []Letter {
	b.tb.Helper()
	var got []Letter
	deadLetters := b.letters()
	b.eventually(fmt.Sprintf("%d dead letters", n), func() bool {
		var err error
		got, _, err = deadLetters.List(b.context(), LetterFilter{}, 0, 100)
		return err == nil && len(got) >= n
	})
	if len(got) != n {
		b.tb.Fatalf("%d dead letters, want %d", len(got), n)
	}
	return got
}

// settled waits until a consumer has nothing pending and nothing unacknowledged.
func (b *bench) settled(stream, consumer string) {
	b.tb.Helper()
	c, err := b.js.Consumer(b.context(), stream, consumer)
	if err != nil {
		b.tb.Fatal(err)
	}
	in, err := b.js.Stream(b.context(), stream)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.eventually(consumer+" is settled", func() bool {
		info, err := c.Info(b.context())
		if err != nil || info.NumPending > 0 || info.NumAckPending > 0 {
			return false
		}
		// The stream acknowledges a message before it tells its consumers of it.
		last, err := in.GetLastMsgForSubject(b.context(), cmp.Or(info.Config.FilterSubject, ">"))
		return errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && info.AckFloor.Stream >= last.Sequence
	})
}

// eventually polls a condition of the broker, which announces nothing.
func (b *bench) eventually(what string, ok func() bool) {
	b.tb.Helper()
	deadline := time.After(patience)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !ok() {
		select {
		case <-poll.C:
		case <-deadline:
			b.tb.Fatalf("waited in vain: %s", what)
		}
	}
}

// await receives one value.
func await[T any](tb testing.TB, ch <-chan T) T {
	tb.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		tb.Fatal("waited in vain")
		panic("unreachable")
	}
}
