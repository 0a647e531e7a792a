package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/cursor"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// tape is what a stream held, from sequence 1.
type tape struct {
	tb   testing.TB
	raws []events.Raw
}

// Read returns three messages at a time.
func (t *tape) Read(_ context.Context, after uint64, yield func([]*pipeline.Entry) error) (cursor.Cursor, error) {
	end := cursor.Cursor{Stream: "EPISODES@1", Sequence: uint64(len(t.raws))}
	for raws := range slices.Chunk(t.raws[after:], 3) {
		batch := make([]*pipeline.Entry, len(raws))
		for i, raw := range raws {
			batch[i] = pipeline.NewEntry(raw)
		}
		if err := yield(batch); err != nil {
			return cursor.Cursor{}, err
		}
	}
	return end, nil
}

func (t *tape) put(s scope.Scope, id string, p events.Payload) {
	t.tb.Helper()
	subject, header, body, err := events.Encode(events.Meta{ID: id, Source: "app", Kind: p.Kind(), Scope: s, Time: noon}, p)
	if err != nil {
		t.tb.Fatal(err)
	}
	t.add(events.Raw{Subject: subject, Header: header, Body: body})
}

func (t *tape) add(raw events.Raw) {
	raw.Stream, raw.StreamID, raw.Sequence, raw.Time, raw.Delivery = Stream, "EPISODES@1", uint64(len(t.raws)+1), noon, 1
	t.raws = append(t.raws, raw)
}

func (t *tape) say(s scope.Scope, ids ...string) {
	t.tb.Helper()
	for _, id := range ids {
		t.put(s, id, events.EpisodeRecorded{Scope: s, Role: events.RoleUser, Content: id, Timestamp: events.Timestamp{Time: noon}})
	}
}

// past is two users of two partitions by turns, what none of them said, and the end of
// a session. Six of nine are episodes.
func past(t *testing.T) *tape {
	t.Helper()
	p := &tape{tb: t}
	p.say(alice, "a1")
	p.say(bob, "b1")
	p.say(alice, "a2")
	p.add(events.Raw{Subject: "palimpsest.episodes.p._._._", Body: []byte("no json")})
	p.put(alice, "bad", events.EpisodeRecorded{Scope: alice, Role: events.RoleUser, Content: "x", SourceNode: strings.Repeat("n", maxSourceNode+1)})
	p.say(bob, "b2")
	p.say(alice, "a3")
	p.put(alice, "end", events.SessionEnded{Scope: alice, Cause: events.EndExplicit})
	p.say(bob, "b3")
	return p
}

var places = map[string]uint64{"a1": 1, "a2": 2, "a3": 3, "b1": 1, "b2": 2, "b3": 3}

// TestRebuild: a store that lost everything, or anything, has all of it in its place.
func TestRebuild(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string][]int{
		"nothing": nil, "prefix": {0, 1, 2}, "one partition": {0, 2, 6}, "the other": {1, 5, 8}, "everything": {0, 1, 2, 5, 6, 7, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, f := past(t), newFixture(t, Config{})
			for _, at := range kept {
				f.mustRecord(t, []*pipeline.Entry{pipeline.NewEntry(p.raws[at])})
			}
			read, lacks := 0, len(places)-len(f.episodes.ordinals())
			n, err := f.Rebuild(t.Context(), p, 0, func() { read++ })
			if n != lacks || read != 9 || err != nil {
				t.Fatalf("%d episodes, %d messages read, %v", n, read, err)
			}
			if diff := cmp.Diff(places, f.episodes.ordinals()); diff != "" {
				t.Errorf("ordinals (-want +got):\n%s", diff)
			}
			if ends := len(f.episodes.ends); ends == 0 || name == "nothing" && (ends != 1 || f.episodes.endedAt[0] != 3) {
				t.Errorf("sessions end behind %v", f.episodes.endedAt)
			}
			if len(f.cursors) != len(Partitions()) {
				t.Errorf("%d cursors", len(f.cursors))
			}
			for _, part := range Partitions() {
				if c := f.cursors[part.Reader]; c != (cursor.Cursor{Stream: "EPISODES@1", Sequence: 9}) {
					t.Errorf("cursor of %s is %+v", part.Reader, c)
				}
			}
		})
	}
}

// TestRebuildBehindASequence reads nothing again.
func TestRebuildBehindASequence(t *testing.T) {
	t.Parallel()
	p, f := past(t), newFixture(t, Config{})
	f.mustRecord(t, []*pipeline.Entry{pipeline.NewEntry(p.raws[0]), pipeline.NewEntry(p.raws[1]), pipeline.NewEntry(p.raws[2])})
	n, err := f.Rebuild(t.Context(), p, 3, func() {})
	if n != 3 || err != nil || !cmp.Equal(places, f.episodes.ordinals()) {
		t.Errorf("%d episodes, %v, ordinals %v", n, err, f.episodes.ordinals())
	}
}

// TestRebuildBehindWhatIsGone: what EPISODES dropped and the store lacks leaves its
// places free.
func TestRebuildBehindWhatIsGone(t *testing.T) {
	t.Parallel()
	p := &tape{tb: t}
	p.say(alice, "a1", "a2", "a3", "a4", "a5")
	f := newFixture(t, Config{})
	f.mustRecord(t, []*pipeline.Entry{pipeline.NewEntry(p.raws[0])})
	if err := f.episodes.CountFrom(t.Context(), alice.Fact(), 3); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Rebuild(t.Context(), p, 3, func() {}); n != 2 || err != nil {
		t.Fatalf("%d episodes, %v", n, err)
	}
	if diff := cmp.Diff(map[string]uint64{"a1": 1, "a4": 4, "a5": 5}, f.episodes.ordinals()); diff != "" {
		t.Errorf("ordinals (-want +got):\n%s", diff)
	}
}

// TestRebuildThatFailsMovesNoCursor, and stores nothing behind the episode that
// failed.
func TestRebuildThatFailsMovesNoCursor(t *testing.T) {
	t.Parallel()
	p, f := past(t), newFixture(t, Config{})
	away := errors.New("connection refused")
	f.episodes.away = map[scope.Scope]error{bob.Fact(): away}
	if _, err := f.Rebuild(t.Context(), p, 0, func() {}); !errors.Is(err, away) || len(f.cursors) != 0 {
		t.Errorf("%v, cursors %v", err, f.cursors)
	}
	f.episodes.away = nil
	lacks := len(places) - len(f.episodes.ordinals())
	if n, err := f.Rebuild(t.Context(), p, 0, func() {}); n != lacks || err != nil || !cmp.Equal(places, f.episodes.ordinals()) {
		t.Errorf("again: %d episodes, %v, ordinals %v", n, err, f.episodes.ordinals())
	}
}

// TestRebuildReadsNoClock: a store is a function of the stream.
func TestRebuildReadsNoClock(t *testing.T) {
	t.Parallel()
	var stores [2][]memory.Episode
	for i := range stores {
		f := newFixture(t, Config{})
		f.deps.Now = func() time.Time { return noon.Add(time.Duration(i) * time.Hour) }
		if _, err := f.Rebuild(t.Context(), past(t), 0, func() {}); err != nil {
			t.Fatal(err)
		}
		stores[i] = f.episodes.puts
	}
	if diff := cmp.Diff(stores[0], stores[1]); diff != "" {
		t.Error(diff)
	}
}

func TestEpisodes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	p := past(t)
	p.say(alice, "a1") // again
	var got []string
	err := f.Episodes(t.Context(), p, func(e memory.Episode) error {
		got = append(got, fmt.Sprint(e.ID, "@", e.Seq))
		return nil
	})
	want := []string{"a1@1", "b1@2", "a2@3", "b2@6", "a3@7", "b3@9", "a1@10"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	enough := errors.New("enough")
	n := 0
	err = f.Episodes(t.Context(), p, func(memory.Episode) error { n++; return enough })
	if !errors.Is(err, enough) || n != 1 || len(f.episodes.puts) != 0 {
		t.Errorf("%v after %d, %d stored", err, n, len(f.episodes.puts))
	}
}

// reader reads the episodes that were put.
type reader struct {
	store.EpisodeReader
	*fakeEpisodes
}

func (r reader) Episode(_ context.Context, in scope.Scope, source, id string) (memory.Episode, error) {
	if r.err != nil {
		return memory.Episode{}, r.err
	}
	for _, e := range r.puts {
		if e.Scope == in && e.Source == source && e.ID == id {
			return e, nil
		}
	}
	return memory.Episode{}, store.ErrNotFound
}

func TestHas(t *testing.T) {
	t.Parallel()
	p, f := past(t), newFixture(t, Config{})
	f.mustRecord(t, []*pipeline.Entry{pipeline.NewEntry(p.raws[0])})
	for at, want := range map[int]struct{ has, decides bool }{
		0: {true, true}, 1: {false, true}, 2: {false, true}, 3: {}, 4: {}, 7: {},
	} {
		has, decides, err := f.Has(t.Context(), reader{fakeEpisodes: f.episodes}, pipeline.NewEntry(p.raws[at]))
		if has != want.has || decides != want.decides || err != nil {
			t.Errorf("message %d: has %t, decides %t, %v", at+1, has, decides, err)
		}
	}
	f.episodes.err = errors.New("disk on fire")
	if _, _, err := f.Has(t.Context(), reader{fakeEpisodes: f.episodes}, pipeline.NewEntry(p.raws[0])); !errors.Is(err, f.episodes.err) {
		t.Errorf("a store that fails: %v", err)
	}
}
