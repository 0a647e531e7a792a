package streams_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"palimpsest/internal/broker"
	"palimpsest/internal/erasure/streams"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const erasedUser = "mallory-7c1e"

func dropErased(_, subject string, _ uint64, data []byte) ([]byte, bool) {
	return data, !strings.Contains(subject, erasedUser)
}

var declared = topology.Declare(topology.Config{})

// place is a server of others, and a connection to it.
type place struct {
	*streams.Server
	of *broker.Remote
}

func (p place) JetStream() jetstream.JetStream { return p.of.JetStream() }

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func publish(t testing.TB, js jetstream.JetStream, subject, body string) {
	t.Helper()
	if _, err := js.Publish(bounded(t), subject, []byte(body)); err != nil {
		t.Fatalf("publish %s: %v", subject, err)
	}
}

// others runs a server that knows nothing of Palimpsest.
func others(t *testing.T) *server.Server {
	t.Helper()
	return brokertest.Serve(t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
	})
}

func remote(t *testing.T, url string) place {
	t.Helper()
	r, err := broker.OpenRemote(t.Context(), broker.ConnectConfig{URL: url, Name: "test"}, declared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return place{streams.Of(r.Conn(), r.JetStream(), declared), r}
}

// until tries again until ok holds or the test ends.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx := bounded(t)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// unpacked returns the files that hold the erased user's name in clear, also those of
// compressed blocks, and how many blocks are compressed.
func unpacked(t *testing.T, dir string) (holding []string, compressed int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		var meta server.CompressionInfo
		if n, bad := meta.UnmarshalMetadata(raw); strings.HasSuffix(path, ".blk") && bad == nil && n > 0 {
			compressed++
			if raw, err = meta.Algorithm.Decompress(raw[n:]); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if bytes.Contains(raw, []byte(erasedUser)) {
			holding = append(holding, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return holding, compressed
}

// TestP10EraseReachesEveryBlock: a server of others writes the blocks anew that hold
// messages of the user, full and compressed ones too, and the index of each stream. Messages
// of others stay as they are.
func TestP10EraseReachesEveryBlock(t *testing.T) {
	t.Parallel()
	srv := others(t)
	r, dir := remote(t, srv.ClientURL()), srv.StoreDir()
	ctx := bounded(t)
	filler := make([]byte, 300<<10) // of 60, two blocks are full
	if _, err := rand.Read(filler); err != nil {
		t.Fatal(err)
	}
	var kept []uint64
	for n := range 60 {
		user := []string{erasedUser, "alice"}[n%2]
		body := slices.Concat(fmt.Appendf(nil, "%s says %d ", user, n), filler)
		ack, err := r.JetStream().Publish(ctx, "palimpsest.episodes.default."+user+"._._", body)
		if err != nil {
			t.Fatal(err)
		}
		if user == "alice" {
			kept = append(kept, ack.Sequence)
		}
		publish(t, r.JetStream(), "palimpsest.stored.default."+user+"._._", user)
	}
	queue, err := r.JetStream().Consumer(ctx, topology.StreamStored, "scheduler-stored")
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		m, err := queue.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.DoubleAck(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var before []string
	until(t, "a full block to be compressed", func() bool { // the server does it in the background
		var packed int
		before, packed = unpacked(t, dir)
		return packed > 0
	})
	if len(before) < 3 {
		t.Fatalf("%v hold the name", before)
	}
	if n, err := r.Count(ctx, dropErased); n != 30 || err != nil {
		t.Errorf("%d messages are counted, want 30: %v", n, err)
	}
	counts, beyond, err := r.Rewrite(ctx, "job", dropErased)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]uint64{topology.StreamEpisodes: 30}, counts); diff != "" {
		t.Error(diff)
	}
	if len(beyond) != 1 { // that of every server
		t.Errorf("not reached: %v", beyond)
	}
	if n, err := r.Count(ctx, dropErased); n != 0 || err != nil {
		t.Errorf("%d messages are left: %v", n, err)
	}
	stream, err := r.JetStream().Stream(ctx, topology.StreamEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, sequence := range kept {
		if m, err := stream.GetMsg(ctx, sequence); err != nil || !bytes.HasSuffix(m.Data, filler) || !bytes.HasPrefix(m.Data, []byte("alice says ")) {
			t.Errorf("message %d of the other user: %v", sequence, err)
		}
	}
	srv.Shutdown()
	srv.WaitForShutdown()
	if left, packed := unpacked(t, dir); len(left) > 0 || packed == 0 {
		t.Errorf("the name is in %v; %d blocks are compressed", left, packed)
	}
}

// TestEraseSaysWhatStays: a queue in which messages wait keeps the bytes of those that
// were acknowledged.
func TestEraseSaysWhatStays(t *testing.T) {
	t.Parallel()
	r := remote(t, others(t).ClientURL())
	ctx := bounded(t)
	for n := range 4 {
		publish(t, r.JetStream(), "palimpsest.commands.default.bob._._", fmt.Sprint(n))
	}
	consumer, err := r.JetStream().Consumer(ctx, topology.StreamCommands, "decider-commands")
	if err != nil {
		t.Fatal(err)
	}
	m, err := consumer.Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.DoubleAck(ctx); err != nil {
		t.Fatal(err)
	}
	_, beyond, err := r.Rewrite(ctx, "job", dropErased)
	if err != nil || len(beyond) != 2 || !strings.Contains(beyond[0], "COMMANDS") || !strings.Contains(beyond[0], "3 messages wait") {
		t.Errorf("not reached: %v, %v", beyond, err)
	}
}

// TestErasesOnlyWhereNoServiceIs: a process with a service is named as long as it is
// connected, also one that waits for no message; a process of another kind does not count.
func TestErasesOnlyWhereNoServiceIs(t *testing.T) {
	t.Parallel()
	srv := others(t)
	r := remote(t, srv.ClientURL())
	if err := r.Still(bounded(t)); err != nil {
		t.Errorf("without services: %v", err)
	}
	var all []*broker.Remote
	for _, name := range topology.Processes() {
		service, err := broker.OpenRemote(t.Context(), broker.ConnectConfig{URL: srv.ClientURL(), Name: name}, declared)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, service)
	}
	if err := r.Still(bounded(t)); !errors.Is(err, streams.ErrRead) || !strings.Contains(err.Error(), strings.Join(topology.Processes(), ", ")) {
		t.Errorf("with each service: %v", err)
	}
	for i, service := range all {
		if i == len(all)-1 {
			if _, err := r.Count(bounded(t), dropErased); !errors.Is(err, streams.ErrRead) {
				t.Errorf("a scan with the last one: %v", err)
			}
		}
		if err := service.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := r.Still(bounded(t)); err != nil {
		t.Errorf("after they ended: %v", err)
	}
}

// TestEraseKeepsANewerKey: an entry of the API keys that is written during an erasure is
// kept, without the user.
func TestEraseKeepsANewerKey(t *testing.T) {
	t.Parallel()
	r := remote(t, others(t).ClientURL())
	subject := topology.SubjectKeys + "one"
	publish(t, r.JetStream(), subject, "old "+erasedUser)
	newer := sync.OnceFunc(func() { publish(t, r.JetStream(), subject, "new "+erasedUser) })
	counts, beyond, err := r.Rewrite(bounded(t), "job", func(stream, _ string, sequence uint64, data []byte) ([]byte, bool) {
		if stream != topology.StreamKeys || sequence == 0 || !bytes.Contains(data, []byte(erasedUser)) {
			return data, true
		}
		newer()
		return bytes.ReplaceAll(data, []byte(erasedUser), []byte("nobody")), true
	})
	if err != nil || counts[topology.StreamKeys] != 1 || len(beyond) != 2 || !strings.Contains(beyond[0], "API keys") {
		t.Errorf("%v are changed, %v not reached: %v", counts, beyond, err)
	}
	keys, err := r.JetStream().Stream(bounded(t), topology.StreamKeys)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := keys.GetLastMsgForSubject(bounded(t), subject); err != nil || string(m.Data) != "new nobody" {
		t.Errorf("the key is %+v: %v", m, err)
	}
}

// TestEraseNamesALackOfPermission: the server does not answer what a login may not ask.
func TestEraseNamesALackOfPermission(t *testing.T) {
	t.Parallel()
	srv := brokertest.Serve(t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
		Users: []*server.User{{Username: "query", Password: "query", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.MSG.DELETE.>"}},
		}}},
	})
	r := remote(t, "nats://query:query@"+srv.Addr().String())
	publish(t, r.JetStream(), "palimpsest.episodes.default."+erasedUser+"._._", erasedUser)
	if _, _, err := r.Rewrite(bounded(t), "job", dropErased); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("without a permission: %v", err)
	}
}
