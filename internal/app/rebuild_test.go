package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// streamDir is the directory of a stream of a stopped Palimpsest.
func streamDir(t *testing.T, data, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(data, natsDir, "jetstream", "*", "streams", name))
	if err != nil || len(found) != 1 {
		t.Fatalf("directory of %s: %v, %v", name, found, err)
	}
	return found[0]
}

func removeAll(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		found, err := filepath.Glob(path)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", path, found, err)
		}
		for _, f := range found {
			if err := os.RemoveAll(f); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// remembered lists episodes by ordinal, and facts: a rebuild must keep both.
func remembered(t *testing.T, h *process) string {
	t.Helper()
	out := exported(t, h)
	for _, user := range []string{"nora", "bob"} {
		page, err := h.store.EpisodeRange(t.Context(), scope.Scope{Project: "default", User: user}, events.Range{From: 0, To: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			out += fmt.Sprintf("%s %d %s\n", user, e.Ordinal, e.Content)
		}
	}
	return out
}

func rebuildOf(t *testing.T, data string, mode recovery.Mode) (recovery.Rebuilt, error) {
	t.Helper()
	return rebuild(t.Context(), loopback(data), slog.New(slog.DiscardHandler), terminal.NewProgress(io.Discard), mode)
}

// damageBlock overwrites the first block of a stream from its middle on.
func damageBlock(t *testing.T, dir string) {
	t.Helper()
	removeAll(t, filepath.Join(dir, "msgs", "index.db"))
	path := filepath.Join(dir, "msgs", "1.blk")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(raw) / 3; i < len(raw); i++ {
		raw[i] = 0x5a
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestP1RebuildKeepsWhatOnlyTheStoreHas: a stream that is gone, or damaged, takes
// nothing from the store that a rebuild makes, and all goes on behind it.
func TestP1RebuildKeepsWhatOnlyTheStoreHas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose     func(t *testing.T, data string)
		onlyLive bool // episodes
		scopes   int  // whose effects are in the store alone
	}{
		"EPISODES gone":    {func(t *testing.T, data string) { removeAll(t, streamDir(t, data, topology.StreamEpisodes)) }, true, 0},
		"EPISODES damaged": {func(t *testing.T, data string) { damageBlock(t, streamDir(t, data, topology.StreamEpisodes)) }, true, 0},
		"AUDIT gone":       {func(t *testing.T, data string) { removeAll(t, streamDir(t, data, topology.StreamAudit)) }, false, 0},
		"AUDIT damaged":    {func(t *testing.T, data string) { damageBlock(t, streamDir(t, data, topology.StreamAudit)) }, false, 0},
		"AUDIT and the audit log gone": {func(t *testing.T, data string) {
			removeAll(t, streamDir(t, data, topology.StreamAudit), filepath.Join(data, auditFile+"*"))
		}, false, 2},
		"all streams gone": {func(t *testing.T, data string) { removeAll(t, filepath.Join(data, natsDir)) }, true, 0},
		"all but the store gone": {func(t *testing.T, data string) {
			removeAll(t, filepath.Join(data, natsDir), filepath.Join(data, auditFile+"*"))
		}, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			h, stop := open(t, data)
			say(t, h, 1, 5)
			want := remembered(t, h)
			digest, err := store.Digest(t.Context(), h.store, memory.ExportFull)
			if err != nil {
				t.Fatal(err)
			}
			stop()
			c.lose(t, data)
			check, err := rebuildOf(t, data, recovery.Mode{Check: true})
			if err != nil || c.onlyLive != (check.OnlyLive > 0) || check.ScopesOnlyLive != c.scopes || check.Switched {
				t.Errorf("check: %+v, %v", check, err)
			}
			if strings.HasSuffix(name, "gone") && name != "all but the store gone" {
				h, stop = open(t, data)
				stream, _, _ := strings.Cut(name, " ")
				if got := h.readiness.Ready(t.Context()).Checks["intact"]; got.OK || !strings.Contains(got.Error, "palimpsest rebuild --data "+data) ||
					name != "all streams gone" && !strings.Contains(got.Error, stream+" is empty") {
					t.Errorf("intact: %+v", got)
				}
				stop()
			}
			out, err := rebuildOf(t, data, recovery.Mode{})
			if err != nil || !out.Switched || out.Lost.Total() > 0 || out.Rebuilt != digest || out.OnlyLive != check.OnlyLive {
				t.Fatalf("rebuild: %+v, %v; want digest %s", out, err, digest)
			}
			h, stop = open(t, data)
			if diff := cmp.Diff(want, remembered(t, h)); diff != "" {
				t.Errorf("after the rebuild (-want +got):\n%s", diff)
			}
			if r := h.readiness.Ready(t.Context()); !r.Ready {
				t.Errorf("not ready: %+v", r)
			}
			say(t, h, 6, 1) // takes its place behind the rest
			stop()
			if again, err := rebuildOf(t, data, recovery.Mode{Check: true}); err != nil || again.ScopesOnlyLive != c.scopes {
				t.Errorf("check again: %+v, %v", again, err)
			}
		})
	}
}

// TestP1RebuildRefusesToLose: where the store is damaged and the streams lack what
// it had, nothing is replaced unless the loss is accepted.
func TestP1RebuildRefusesToLose(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	h, stop := open(t, data)
	say(t, h, 1, 5)
	stop()
	path := filepath.Join(data, memoryFile)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/4); err != nil {
		t.Fatal(err)
	}
	removeAll(t, streamDir(t, data, topology.StreamEpisodes))
	var lost *recovery.LossError
	out, err := rebuildOf(t, data, recovery.Mode{})
	if !errors.As(err, &lost) || lost.Episodes != 10 || out.Switched || !strings.Contains(err.Error(), "--accept-loss 10") {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := rebuildOf(t, data, recovery.Mode{Accept: 9}); !errors.As(err, &lost) {
		t.Errorf("9 accepted: %v", err)
	}
	if left, err := os.Stat(path); err != nil || left.Size() != info.Size()/4 {
		t.Errorf("the store is another: %v, %v", left, err)
	}
	if out, err := rebuildOf(t, data, recovery.Mode{Accept: 10}); err != nil || !out.Switched {
		t.Errorf("10 accepted: %+v, %v", out, err)
	}
}
