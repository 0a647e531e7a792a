package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// tape is what a stream held, from sequence 1.
type tape struct {
	raws  []events.Raw
	floor uint64
	reads int
	one   bool // all users are of one partition
}

func (t *tape) Read(_ context.Context, after uint64, yield func(events.Raw, bool) error) error {
	for _, raw := range t.raws {
		if raw.Sequence <= after {
			continue
		}
		t.reads++
		if err := yield(raw, raw.Sequence <= t.floor); err != nil {
			return err
		}
	}
	return nil
}

func (t *tape) put(tb testing.TB, s scope.Scope, id string, p events.Payload) {
	tb.Helper()
	subject, header, body, err := events.Encode(events.Meta{ID: id, Source: "app", Kind: p.Kind(), Scope: s, Time: noon}, p)
	if err != nil {
		tb.Fatal(err)
	}
	t.raws = append(t.raws, events.Raw{
		Subject: subject, Header: header, Body: body, Stream: "EPISODES", StreamID: "EPISODES@1", Sequence: uint64(len(t.raws) + 1), Time: noon, Delivery: 1,
	})
}

// stored answers from what was put.
type stored struct {
	store.EpisodeReader
	*fakeEpisodes
}

func (s stored) Episode(_ context.Context, in scope.Scope, source, id string) (memory.Episode, error) {
	for _, e := range s.puts {
		if e.Scope == in && e.Source == source && e.ID == id {
			return e, nil
		}
	}
	return memory.Episode{}, store.ErrNotFound
}

// Newest takes a user for a partition, unless all are of one.
func (t *tape) Newest(_ context.Context, accept func(events.Raw) (bool, error)) error {
	enough := map[string]bool{}
	for _, raw := range slices.Backward(t.raws) {
		partition := raw.Subject
		if t.one {
			partition = ""
		}
		if raw.Sequence > t.floor || enough[partition] {
			continue
		}
		t.reads++
		ok, err := accept(raw)
		if err != nil {
			return err
		}
		enough[partition] = ok
	}
	return nil
}

// uncounted is for a stream that has dropped nothing.
func uncounted(context.Context) error { return nil }

// A store restored from an older copy gets back what was said since, in the
// ordinals that it had; partitions may have been stored to different depths.
func TestRecoverRestoredStore(t *testing.T) {
	t.Parallel()
	bob := scope.Scope{Project: "p", User: "bob", Session: "s1"}
	past := &tape{floor: 8}
	for _, m := range []struct {
		s  scope.Scope
		id string
	}{{alice, "a1"}, {bob, "b1"}, {alice, "a2"}, {bob, "b2"}, {alice, "a3"}, {bob, "b3"}} {
		past.put(t, m.s, m.id, events.EpisodeRecorded{Scope: m.s, Role: events.RoleUser, Content: m.id, Timestamp: events.Timestamp{Time: noon}})
	}
	past.put(t, alice, "end", events.SessionEnded{Scope: alice, Cause: events.EndExplicit})
	past.raws = append(past.raws, events.Raw{Subject: "palimpsest.episodes.p._._._", Body: []byte("no json"), Stream: "EPISODES", Sequence: 8})

	whole := newFixture(t, Config{})
	if n, err := whole.Recover(t.Context(), past, stored{fakeEpisodes: whole.episodes}, uncounted); n != 6 || err != nil {
		t.Fatalf("a lost store: %d stored, %v", n, err)
	}
	past.reads = 0
	if n, err := whole.Recover(t.Context(), past, stored{fakeEpisodes: whole.episodes}, uncounted); n != 0 || err != nil || past.reads != 4 {
		t.Errorf("a whole store: %d stored, %d messages looked at, %v", n, past.reads, err)
	}
	past.floor = 0
	crashed := newFixture(t, Config{})
	if n, err := crashed.Recover(t.Context(), past, stored{fakeEpisodes: crashed.episodes}, uncounted); n != 0 || err != nil {
		t.Errorf("under way when the process died: %d stored, %v", n, err)
	}
	past.floor = 8
	for name, kept := range map[string][]int{
		"prefix": {0, 1, 2}, "one partition lags": {0, 2, 4}, "the other lags": {1, 3, 5},
	} {
		f := newFixture(t, Config{})
		for _, at := range kept {
			if _, err := f.again(t.Context(), past.raws[at]); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := f.Recover(t.Context(), past, stored{fakeEpisodes: f.episodes}, uncounted); n != 3 || err != nil {
			t.Errorf("%s: %d stored, %v", name, n, err)
		}
		ordinals := map[string]uint64{}
		for _, e := range f.episodes.puts {
			ordinals[e.ID] = e.Ordinal
		}
		if diff := cmp.Diff(map[string]uint64{"a1": 1, "a2": 2, "a3": 3, "b1": 1, "b2": 2, "b3": 3}, ordinals); diff != "" {
			t.Errorf("%s: ordinals (-want +got):\n%s", name, diff)
		}
		if len(f.episodes.ends) != 1 {
			t.Errorf("%s: %d session ends, want 1", name, len(f.episodes.ends))
		}
	}
}

// TestP1PutBackWhatOneServerLost: of two users in one partition, whose scopes lie
// on two servers, one lost its newest. The partition's newest is there, and tells
// nothing.
func TestP1PutBackWhatOneServerLost(t *testing.T) {
	t.Parallel()
	past := &tape{floor: 4, one: true}
	bob := scope.Scope{Project: "p", User: "bob"}
	for i, s := range []scope.Scope{alice, bob, alice, bob} {
		past.put(t, s, fmt.Sprint(i), events.EpisodeRecorded{Scope: s, Role: events.RoleUser, Content: "x", Timestamp: events.Timestamp{Time: noon}})
	}
	f := newFixture(t, Config{})
	for _, at := range []int{0, 1, 3} {
		if _, err := f.again(t.Context(), past.raws[at]); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := f.Recover(t.Context(), past, stored{fakeEpisodes: f.episodes}, uncounted); n != 0 || err != nil {
		t.Fatalf("%d stored, %v: one server alone cannot have lost this", n, err)
	}
	if n, err := f.PutBack(t.Context(), past, uncounted); n != 1 || err != nil {
		t.Errorf("%d stored, %v", n, err)
	}
}

// What EPISODES dropped and the store lacks leaves its places free, and nothing
// is stored where they are not known.
func TestRecoverBehindWhatIsGone(t *testing.T) {
	t.Parallel()
	past := &tape{floor: 9}
	for _, id := range []string{"a1", "a2", "a3", "a4", "a5"} {
		past.put(t, alice, id, events.EpisodeRecorded{Scope: alice, Role: events.RoleUser, Content: id, Timestamp: events.Timestamp{Time: noon}})
	}
	f := newFixture(t, Config{})
	if _, err := f.again(t.Context(), past.raws[0]); err != nil {
		t.Fatal(err)
	}
	past.raws = past.raws[3:]
	unknown := errors.New("nobody knows")
	n, err := f.Recover(t.Context(), past, stored{fakeEpisodes: f.episodes}, func(context.Context) error { return unknown })
	if n != 0 || !errors.Is(err, unknown) || len(f.episodes.puts) != 1 {
		t.Fatalf("%d stored, %v", n, err)
	}
	n, err = f.Recover(t.Context(), past, stored{fakeEpisodes: f.episodes}, func(ctx context.Context) error {
		return f.episodes.CountFrom(ctx, alice.Fact(), 3)
	})
	if n != 2 || err != nil {
		t.Fatalf("%d stored, %v", n, err)
	}
	ordinals := map[string]uint64{}
	for _, e := range f.episodes.puts {
		ordinals[e.ID] = e.Ordinal
	}
	if diff := cmp.Diff(map[string]uint64{"a1": 1, "a4": 4, "a5": 5}, ordinals); diff != "" {
		t.Errorf("ordinals (-want +got):\n%s", diff)
	}
}
