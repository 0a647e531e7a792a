package broker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

var declared = topology.Declare(topology.Config{})

func streamOf(t *testing.T, name string) jetstream.StreamConfig {
	t.Helper()
	i := slices.IndexFunc(declared.Streams, func(s topology.Stream) bool { return s.Config.Name == name })
	if i < 0 {
		t.Fatalf("no stream %s", name)
	}
	return declared.Streams[i].Config
}

// others runs a server that knows nothing of Palimpsest.
func others(t *testing.T) *server.Server {
	t.Helper()
	return brokertest.Serve(t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
	})
}

func remote(t *testing.T, srv *server.Server) *broker.Remote {
	t.Helper()
	r, err := broker.OpenRemote(t.Context(), broker.ConnectConfig{URL: srv.ClientURL(), Name: "test"}, declared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestManyMakeTheTopologyAtOnce: processes start together, and none waits for
// another.
func TestManyMakeTheTopologyAtOnce(t *testing.T) {
	t.Parallel()
	srv := others(t)
	var starts errgroup.Group
	for range 6 {
		starts.Go(func() error {
			r, err := broker.OpenRemote(t.Context(), broker.ConnectConfig{URL: srv.ClientURL()}, declared)
			if err == nil {
				err = r.Shutdown(t.Context())
			}
			return err
		})
	}
	if err := starts.Wait(); err != nil {
		t.Fatal(err)
	}
	r := remote(t, srv)
	if found, err := topology.Diff(t.Context(), r.JetStream(), declared); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	if err := r.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestStartChangesNoTopology: a start keeps the operator's settings, refuses
// settings that cannot work, and creates what is missing.
func TestStartChangesNoTopology(t *testing.T) {
	t.Parallel()
	srv := others(t)
	js := remote(t, srv).JetStream()
	chosen := streamOf(t, topology.StreamAccess)
	chosen.MaxAge = time.Hour
	if _, err := js.UpdateStream(t.Context(), chosen); err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(t.Context(), topology.StreamTicks, "extractor-ticks"); err != nil {
		t.Fatal(err)
	}
	remote(t, srv)
	found, err := topology.Diff(t.Context(), js, declared)
	if err != nil || len(found) != 1 || found[0].Field != "age" || found[0].Incompatible {
		t.Errorf("%v, %v", found, err)
	}
	wrong := streamOf(t, topology.StreamCommands)
	wrong.MaxMsgsPerSubject = 1
	if _, err := js.UpdateStream(t.Context(), wrong); err != nil {
		t.Fatal(err)
	}
	_, err = broker.OpenRemote(t.Context(), broker.ConnectConfig{URL: srv.ClientURL()}, declared)
	if !errors.Is(err, topology.ErrIncompatible) || !strings.Contains(err.Error(), "COMMANDS messages per subject: want unlimited, have 1") {
		t.Errorf("%v", err)
	}
}

// TestRemoteSaysThatItsServerIsGone, and that JetStream is.
func TestRemoteSaysThatItsServerIsGone(t *testing.T) {
	t.Parallel()
	srv := others(t)
	r := remote(t, srv)
	if err := srv.DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), time.Second) // no server answers
	defer cancel()
	if err := r.Ready(within); err == nil {
		t.Error("ready without JetStream")
	}
	srv.Shutdown()
	srv.WaitForShutdown()
	until(t, "the connection is lost", func() bool { return !r.Conn().IsConnected() })
	if err := r.Ready(t.Context()); !errors.Is(err, broker.ErrNotConnected) {
		t.Errorf("without a server: %v", err)
	}
}

// TestServerWithoutJetStream is named at once, by a start and by a check.
func TestServerWithoutJetStream(t *testing.T) {
	t.Parallel()
	srv := brokertest.Serve(t, &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	to := broker.ConnectConfig{URL: srv.ClientURL(), Name: "test"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := broker.OpenRemote(ctx, to, declared)
	for what, err := range map[string]error{"start": err, "check": broker.Reach(ctx, to)} {
		if !errors.Is(err, broker.ErrNoJetStream) || ctx.Err() != nil {
			t.Errorf("%s: %v, %v", what, err, ctx.Err())
		}
	}
	if err := broker.Reach(ctx, broker.ConnectConfig{URL: others(t).ClientURL(), Name: "test"}); err != nil {
		t.Errorf("a server with JetStream: %v", err)
	}
}
