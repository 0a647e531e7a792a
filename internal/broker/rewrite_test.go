package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/topology"
)

const erasedUser = "mallory-7c1e"

func dropErased(_, subject string, _ uint64, data []byte) ([]byte, bool) {
	return data, !strings.Contains(subject, erasedUser)
}

// inStopped runs use on a broker that is stopped behind it.
func inStopped(t *testing.T, dir string, use func(b *broker.Embedded)) {
	t.Helper()
	b, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	use(b)
	if err := b.Shutdown(bounded(t)); err != nil {
		t.Fatal(err)
	}
}

// told publishes messages of two users in turns, acknowledges some that a work
// queue holds, and returns those that must stay.
func told(t *testing.T, dir string) (kept []string) {
	inStopped(t, dir, func(b *broker.Embedded) {
		js := b.JetStream()
		for i := range 40 {
			user := []string{"alice", erasedUser}[i%2]
			msg := &nats.Msg{
				Subject: "palimpsest.episodes.default." + user + "._._",
				Header:  nats.Header{"X-Of": {user}}, Data: fmt.Appendf(nil, "%s says %d", user, i),
			}
			ack, err := js.PublishMsg(bounded(t), msg)
			if err != nil {
				t.Fatal(err)
			}
			if user == "alice" {
				kept = append(kept, fmt.Sprintf("%d %s %v", ack.Sequence, msg.Data, msg.Header))
			}
			publish(t, js, "palimpsest.commands.default."+user+"._._", fmt.Sprintf("%s wants %d", user, i))
		}
		consumer, err := js.Consumer(bounded(t), topology.StreamCommands, "decider-commands")
		if err != nil {
			t.Fatal(err)
		}
		for range 10 { // acknowledged messages leave the queue, and stay in its file
			m, err := consumer.Next()
			if err != nil {
				t.Fatal(err)
			}
			if err := m.DoubleAck(bounded(t)); err != nil {
				t.Fatal(err)
			}
		}
	})
	return kept
}

// holding returns the files that hold the erased user's name in clear.
func holding(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(erasedUser)) || strings.Contains(path, erasedUser) {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestP10RewriteLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := told(t, dir)
	if len(holding(t, dir)) == 0 {
		t.Fatal("the name is not there to begin with")
	}
	var created time.Time
	inStopped(t, dir, func(b *broker.Embedded) { created = createdAt(t, b.JetStream()) })
	dropped, _, err := stopped(dir).Rewrite(bounded(t), "job", dropErased)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]uint64{topology.StreamEpisodes: 20, topology.StreamCommands: 15}, dropped); diff != "" {
		t.Error(diff)
	}
	if n, err := stopped(dir).Count(bounded(t), dropErased); n > 0 || err != nil {
		t.Errorf("%d messages are left: %v", n, err)
	}
	if left := holding(t, dir); left != nil {
		t.Errorf("the name is still in %v", left)
	}
	inStopped(t, dir, func(b *broker.Embedded) {
		js := b.JetStream()
		if got := createdAt(t, js); !got.Equal(created) {
			t.Errorf("EPISODES was created at %v, and is of %v", created, got)
		}
		if diff := cmp.Diff(want, episodesIn(t, js)); diff != "" {
			t.Error(diff)
		}
		if ack := publish(t, js, episodes, "next"); ack.Sequence != 41 {
			t.Errorf("the next message has sequence %d, want 41", ack.Sequence)
		}
		consumer, err := js.Consumer(bounded(t), topology.StreamCommands, "decider-commands")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 15 { // five of alice's twenty were acknowledged
			m, err := consumer.Next()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(m.Data()), fmt.Sprintf("alice wants %d", 10+2*i); got != want {
				t.Errorf("the queue delivers %q, want %q", got, want)
			}
			if err := m.DoubleAck(bounded(t)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func createdAt(t *testing.T, js jetstream.JetStream) time.Time {
	t.Helper()
	stream, err := js.Stream(bounded(t), topology.StreamEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().Created
}

func episodesIn(t *testing.T, js jetstream.JetStream) (out []string) {
	t.Helper()
	stream, err := js.Stream(bounded(t), topology.StreamEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(bounded(t), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d %s %v", m.Sequence, m.Data, m.Header))
	}
	return out
}

// TestRewriteThatFailsChangesNothing: an interrupted copy is thrown away.
func TestRewriteThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	told(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	if _, _, err := stopped(dir).Rewrite(ctx, "job", func(_, _ string, _ uint64, data []byte) ([]byte, bool) {
		cancel()
		return data, true
	}); err == nil {
		t.Fatal("a rewrite that was interrupted returned nil")
	}
	if err := broker.ResumeRewrite(dir); err != nil {
		t.Fatal(err)
	}
	inStopped(t, dir, func(b *broker.Embedded) {
		if got := len(episodesIn(t, b.JetStream())); got != 40 {
			t.Errorf("%d episodes are left of 40", got)
		}
	})
}

// TestRewriteChangesMessages: a changed message keeps its sequence, time and headers.
func TestRewriteChangesMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	told(t, dir)
	change := func(stream, _ string, _ uint64, data []byte) ([]byte, bool) {
		if stream == topology.StreamEpisodes && string(data) == "alice says 2" {
			return []byte("alice says nothing"), true
		}
		return data, true
	}
	var want []string
	inStopped(t, dir, func(b *broker.Embedded) {
		for _, line := range episodesIn(t, b.JetStream()) {
			want = append(want, strings.Replace(line, "alice says 2 ", "alice says nothing ", 1))
		}
	})
	edited, _, err := stopped(dir).Rewrite(bounded(t), "job", change)
	if err != nil || edited[topology.StreamEpisodes] != 1 || len(edited) != 1 {
		t.Fatalf("edited %v: %v", edited, err)
	}
	inStopped(t, dir, func(b *broker.Embedded) {
		if diff := cmp.Diff(want, episodesIn(t, b.JetStream())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRewriteKeepsLimits: the limits of the streams stay as configured. A server of the
// directory writes them when it starts, also one that a rewrite starts.
func TestRewriteKeepsLimits(t *testing.T) {
	t.Parallel()
	dir, cfg := t.TempDir(), broker.DefaultConfig()
	told(t, dir)
	cfg.EpisodesMaxAge = 100 * 24 * time.Hour
	if _, _, err := cfg.Stopped(dir, nil).Rewrite(bounded(t), "job", dropErased); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", topology.StreamEpisodes, server.JetStreamMetaFile))
	if err != nil || len(files) != 1 {
		t.Fatalf("found %v: %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var stored jetstream.StreamConfig
	if err := json.Unmarshal(raw, &stored); err != nil || stored.MaxAge != cfg.EpisodesMaxAge {
		t.Errorf("EPISODES is kept for %v, want %v: %v", stored.MaxAge, cfg.EpisodesMaxAge, err)
	}
}

func stopped(dir string) broker.Stopped {
	return broker.Stopped{EmbeddedConfig: broker.EmbeddedConfig{Dir: dir}}
}
