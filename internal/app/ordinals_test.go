package app

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit/journal"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestUnseenEpisodesStayPending: if the store and the oldest episodes are lost, a
// start numbers the remaining ones so that those that no rule has seen are pending,
// whether effects name any of them or not.
func TestUnseenEpisodesStayPending(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"named": "I live in Town%d.", "not named": "Is it %d o'clock?"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const all, seen, left = 12, 9, 6
			dir := t.TempDir()
			h, stop := open(t, dir)
			for n := 1; n <= seen; n++ {
				tell(t, h, "nora", n, fmt.Sprintf(line, n))
				consolidated(t, h, "nora", uint64(n))
			}
			stop()
			// Now ingest alone runs, and no rule sees the episodes that it stores.
			h, stop = openAltered(t, loopback(dir), func(*process) {}, func(h *process) { h.services = h.services[:1] })
			for n := seen + 1; n <= all; n++ {
				tell(t, h, "nora", n, fmt.Sprintf("I have a cat named Tom%d.", n))
			}
			nora := scope.Scope{Project: "default", User: "nora"}
			eventually(t, "all are stored", func() error {
				state, err := h.store.State(t.Context(), nora)
				if err == nil && state.LastOrdinal < all {
					err = fmt.Errorf("state %+v", state)
				}
				return err
			})
			stream, err := h.streams.JetStream().Stream(t.Context(), topology.StreamEpisodes)
			if err == nil {
				err = stream.Purge(t.Context(), jetstream.WithPurgeSequence(all-left+1))
			}
			if err != nil {
				t.Fatal(err)
			}
			stop()
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(filepath.Join(dir, memoryFile+suffix)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			want := uint64(all)
			if name == "not named" {
				want = seen + left
			}
			h, stop = open(t, dir)
			defer stop()
			if state := reachedBy(t, h, nora, want); state.LastOrdinal != want {
				t.Errorf("state %+v, want last ordinal %d", state, want)
			}
			e, err := h.store.EpisodeRange(t.Context(), nora, events.Range{From: want - 1, To: want})
			if err != nil || len(e) != 1 || e[0].ID != fmt.Sprintf("nora-%d", all) {
				t.Errorf("at %d stands %v, %v", want, e, err)
			}
		})
	}
}

// TestDroppedEpisodesKeepTheirOrdinals: if an older copy of the store is put back
// and EPISODES has dropped the episodes soon after the copy, the remaining ones get
// the ordinals that the effects name.
func TestDroppedEpisodesKeepTheirOrdinals(t *testing.T) {
	t.Parallel()
	const copied, gone, all = 3, 5, 9
	dir := t.TempDir()
	path := filepath.Join(dir, memoryFile)
	nora := scope.Scope{Project: "default", User: "nora"}
	say := func(h *process, from, to int) {
		for n := from; n <= to; n++ {
			tell(t, h, "nora", n, fmt.Sprintf("I have a cat named Tom%d.", n))
			consolidated(t, h, "nora", uint64(n))
		}
	}
	h, stop := open(t, dir)
	say(h, 1, copied)
	stop()
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, stop = open(t, dir)
	say(h, copied+1, all)
	stream, err := h.streams.JetStream().Stream(t.Context(), topology.StreamEpisodes)
	if err == nil {
		err = stream.Purge(t.Context(), jetstream.WithPurgeSequence(gone+1))
	}
	if err != nil {
		t.Fatal(err)
	}
	want := exported(t, h)
	stop()
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, older, 0o600); err != nil {
		t.Fatal(err)
	}

	h, stop = open(t, dir)
	defer stop()
	consolidated(t, h, "nora", all)
	if diff := cmp.Diff(want, exported(t, h)); diff != "" {
		t.Errorf("healed (-want +got):\n%s", diff)
	}
	say(h, all+1, all+1)
	stored, err := h.store.EpisodeRange(t.Context(), nora, events.Range{To: all + 2})
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]uint64{}
	for _, e := range stored {
		places[e.ID] = e.Ordinal
	}
	wanted := map[string]uint64{}
	for n := uint64(1); n <= all+1; n++ {
		if n <= copied || n > gone {
			wanted[fmt.Sprintf("nora-%d", n)] = n
		}
	}
	if diff := cmp.Diff(wanted, places); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	for e, err := range journal.New(h.streams.JetStream()).All(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range e.Data.Applied {
			for _, id := range d.Delta.Provenance().SourceEpisodeIDs {
				if at, kept := places[id]; kept && (at <= e.Data.Range.From || at > e.Data.Range.To) {
					t.Errorf("effect %d over %+v rests on %s, which stands at %d", e.Data.Revision, *e.Data.Range, id, at)
				}
			}
		}
	}
	if _, err := h.caughtUp.Ready(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}
}
