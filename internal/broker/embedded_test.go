package broker_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

const episodes = "palimpsest.episodes.default.alice._._"

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func publish(t testing.TB, js jetstream.JetStream, subject, body string) *jetstream.PubAck {
	t.Helper()
	ack, err := js.Publish(bounded(t), subject, []byte(body))
	if err != nil {
		t.Fatalf("publish %s: %v", subject, err)
	}
	return ack
}

func TestRestartKeepsDataAndConnections(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	other := env.Connect(t)
	first := publish(t, env.JS, episodes, "one")

	env.Restart(t)
	if err := env.Broker.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := env.Broker.ClientURL(); got != env.URL {
		t.Errorf("address moved from %s to %s", env.URL, got)
	}
	second := publish(t, env.JS, episodes, "two")
	if second.Sequence != first.Sequence+1 {
		t.Errorf("sequence %d follows %d", second.Sequence, first.Sequence)
	}
	if err := other.FlushWithContext(bounded(t)); err != nil && !errors.Is(err, nats.ErrConnectionReconnecting) {
		t.Errorf("connection of another process: %v", err)
	}
}

func TestSecondProcessOpensWhatTheFirstLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Sync: broker.SyncAlways})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, first.JetStream(), episodes, "one")
	for range 2 {
		if err := first.Shutdown(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Ready(t.Context()); !errors.Is(err, broker.ErrNotRunning) {
		t.Errorf("Ready after Shutdown = %v", err)
	}
	if _, err := broker.Endpoint(dir); !errors.Is(err, broker.ErrNotRunning) {
		t.Errorf("Endpoint after Shutdown = %v", err)
	}
	if err := first.Restart(bounded(t)); !errors.Is(err, broker.ErrNotRunning) {
		t.Errorf("Restart after Shutdown = %v", err)
	}
	env := brokertest.StartWith(t, broker.EmbeddedConfig{Dir: dir})
	stream, err := env.JS.Stream(bounded(t), topology.StreamEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d episodes, want 1", n)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "jetstream"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		cfg  broker.EmbeddedConfig
		want error
	}{
		{"port taken", broker.EmbeddedConfig{Dir: t.TempDir(), Port: taken.Addr().(*net.TCPAddr).Port}, broker.ErrPort},
		{"host elsewhere", broker.EmbeddedConfig{Dir: t.TempDir(), Host: "203.0.113.1"}, broker.ErrPort},
		{"directory in use", broker.EmbeddedConfig{Dir: env.Dir}, broker.ErrInUse},
		{"directory is a file", broker.EmbeddedConfig{Dir: file}, broker.ErrDirectory},
		{"directory below a file", broker.EmbeddedConfig{Dir: filepath.Join(file, "data")}, broker.ErrDirectory},
		{"store is a file", broker.EmbeddedConfig{Dir: broken}, broker.ErrDirectory},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b, err := broker.StartEmbedded(tc.cfg)
			if err == nil {
				_ = b.Shutdown(bounded(t))
			}
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			t.Log(err)
		})
	}
	if err := env.Broker.Ready(t.Context()); err != nil {
		t.Errorf("the first broker suffered: %v", err)
	}
}

func TestConfigIsValidated(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]broker.EmbeddedConfig{
		"no directory": {},
		"port":         {Dir: "x", Port: 70000},
		"sync":         {Dir: "x", Sync: "sometimes"},
		"replicas":     {Dir: "x", Topology: topology.Config{Replicas: 6}},
		"age":          {Dir: "x", Topology: topology.Config{AuditMaxAge: time.Second}},
	} {
		if err := cfg.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCredentialIsPrivateAndKept(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	path := filepath.Join(env.Dir, broker.SeedFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	env.Restart(t)
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("credential changed over a restart (%v)", err)
	}
	if err := env.Connect(t).FlushWithContext(bounded(t)); err != nil {
		t.Error(err)
	}
}

func TestReadableCredentialIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := brokertest.StartWith(t, broker.EmbeddedConfig{Dir: dir})
	if err := first.Broker.Shutdown(bounded(t)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, broker.SeedFile)
	leaked, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	brokertest.StartWith(t, broker.EmbeddedConfig{Dir: dir})
	if now, err := os.ReadFile(path); err != nil || string(now) == string(leaked) {
		t.Errorf("a leaked credential is still in use (%v)", err)
	}
}

// A private broker serves this process alone.
func TestPrivateListensNowhere(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	env := brokertest.StartWith(t, broker.EmbeddedConfig{Private: true, Port: taken.Addr().(*net.TCPAddr).Port})
	if err := env.Broker.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := env.JS.Stream(bounded(t), topology.StreamEpisodes); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(env.Dir, broker.URLFile)); !os.IsNotExist(err) {
		t.Errorf("it says where it can be reached: %v", err)
	}
}

// TestLimitsOfKeptStreams: the server of this process trims EPISODES and AUDIT as its
// settings say, also where they were declared without limits before.
func TestLimitsOfKeptStreams(t *testing.T) {
	t.Parallel()
	dir, cfg := t.TempDir(), broker.DefaultConfig()
	cfg.URL, cfg.Replicas = broker.OwnServer, 3 // one server has one copy
	for _, limits := range []topology.Config{{Replicas: 3}, {Replicas: 3, EpisodesMaxAge: time.Hour, AuditMaxBytes: 1 << 20}} {
		cfg.Config = limits
		e, err := cfg.StartPrivate(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		kept, err1 := e.JetStream().Stream(bounded(t), topology.StreamEpisodes)
		audit, err2 := e.JetStream().Stream(bounded(t), topology.StreamAudit)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		age, bytes := kept.CachedInfo().Config.MaxAge, max(0, audit.CachedInfo().Config.MaxBytes)
		if age != limits.EpisodesMaxAge || bytes != limits.AuditMaxBytes {
			t.Errorf("EPISODES keeps for %v, AUDIT %d bytes, want %+v", age, bytes, limits)
		}
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
