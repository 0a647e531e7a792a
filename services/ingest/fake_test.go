package ingest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/cursor"
	"palimpsest/internal/embed"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	alice = scope.Scope{Project: "p", User: "alice", Session: "s1"}
	bob   = scope.Scope{Project: "p", User: "bob", Session: "s1"}
)

// fakeEpisodes keeps episodes by id, one fact scope each. It stores all of a call or
// nothing, and no episode of the scopes that are away.
type fakeEpisodes struct {
	mu     sync.Mutex
	err    error
	away   map[scope.Scope]error // by fact scope
	puts   []memory.Episode
	ends   []events.SessionEnd
	endErr error
	// endedAt is how many episodes each end of a session found in its fact scope.
	endedAt []uint64
	calls   int
	states  map[scope.Scope]memory.State
}

func (f *fakeEpisodes) PutEpisode(ctx context.Context, e memory.Episode) (store.Put, error) {
	puts, err := f.PutEpisodes(ctx, []memory.Episode{e})
	if err != nil {
		return store.Put{}, err
	}
	return puts[0], nil
}

func (f *fakeEpisodes) PutEpisodes(_ context.Context, es []memory.Episode) ([]store.Put, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	for _, e := range es {
		if err := cmp.Or(f.err, f.away[e.Scope.Fact()]); err != nil {
			return nil, err
		}
	}
	puts := make([]store.Put, len(es))
	for i, e := range es {
		puts[i] = f.put(e)
	}
	return puts, nil
}

func (f *fakeEpisodes) put(e memory.Episode) store.Put {
	state := f.state(e.Scope.Fact())
	for _, known := range f.puts {
		if known.Scope == e.Scope && known.Source == e.Source && known.ID == e.ID {
			conflict := known.Content != e.Content || known.Role != e.Role || known.Mode != e.Mode
			return store.Put{Episode: known, Known: !conflict, Conflict: conflict, State: state}
		}
	}
	state.LastOrdinal++
	f.states[state.Scope] = state
	e.Ordinal = state.LastOrdinal
	f.puts = append(f.puts, e)
	return store.Put{Episode: e, State: state}
}

// ordinals are the places of all episodes, by id.
func (f *fakeEpisodes) ordinals() map[string]uint64 {
	out := map[string]uint64{}
	for _, e := range f.puts {
		out[e.ID] = e.Ordinal
	}
	return out
}

func (f *fakeEpisodes) EndSession(_ context.Context, session scope.Scope, end events.SessionEnd) (memory.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := cmp.Or(f.err, f.endErr); err != nil {
		return memory.State{}, err
	}
	f.ends = append(f.ends, end)
	f.endedAt = append(f.endedAt, f.state(session.Fact()).LastOrdinal)
	return f.state(session.Fact()), nil
}

func (f *fakeEpisodes) CountFrom(_ context.Context, fact scope.Scope, last uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.state(fact)
	state.LastOrdinal = max(state.LastOrdinal, last)
	f.states[fact] = state
	return f.err
}

func (f *fakeEpisodes) state(fact scope.Scope) memory.State {
	if f.states == nil {
		f.states = make(map[scope.Scope]memory.State)
	}
	state := f.states[fact]
	state.Scope = fact
	return state
}

// cursors keeps cursors in a map. All readers are this process's.
type cursors map[string]cursor.Cursor

func (c cursors) ReadCursors(_ context.Context, readers ...string) ([]cursor.Cursor, error) {
	out := make([]cursor.Cursor, len(readers))
	for i, r := range readers {
		out[i] = c[r]
	}
	return out, nil
}

func (c cursors) SetCursor(_ context.Context, reader string, _ uint64, at cursor.Cursor) error {
	c[reader] = at
	return nil
}

func (c cursors) Share(_ context.Context, _ string, readers []string, _ string, _ time.Duration) ([]string, error) {
	return readers, nil
}

type fixture struct {
	*Service
	episodes *fakeEpisodes
	vectors  *fakeVectors
	embedder *fakeEmbedder
	cursors  cursors
}

func newFixture(t *testing.T, cfg Config) fixture {
	t.Helper()
	f := fixture{episodes: new(fakeEpisodes), vectors: new(fakeVectors), embedder: new(fakeEmbedder), cursors: cursors{}}
	s, err := New(cfg, Deps{
		Episodes: f.episodes, Cursors: f.cursors, Shares: f.cursors, Vectors: f.vectors, Embedders: embed.Only(f.embedder),
		Now: func() time.Time { return noon },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Service = s
	f.share(t, "p1")
	return f
}

// share gives the process its share of the partitions.
func (f fixture) share(t testing.TB, process string) {
	t.Helper()
	mine, err := f.deps.Shares.Share(t.Context(), f.Name(), pipeline.Readers(Partitions()), process, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	f.shared(mine)
}

// mustRecord records a batch, and compares the errors of its messages with want: ""
// for none, "refused" or "retried". It returns what follows each of them.
func (f fixture) mustRecord(t testing.TB, in []*pipeline.Entry, want ...string) [][]events.Payload {
	t.Helper()
	if err := f.record(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	if want == nil {
		want = make([]string, len(in))
	}
	got, out := make([]string, len(in)), make([][]events.Payload, len(in))
	for i, e := range in {
		switch {
		case pipeline.IsRefused(e.Err):
			got[i] = "refused"
		case e.Err != nil:
			got[i] = "retried"
		}
		out[i] = e.Out
		if e.Err != nil && len(e.Out) > 0 {
			t.Errorf("message %d, %v, is followed by %v", i, e.Err, e.Out)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("errors %q, want %q", got, want)
	}
	return out
}

// recordOne records one episode by itself.
func (f fixture) recordOne(t testing.TB, in events.Event[events.EpisodeRecorded]) ([]events.Payload, error) {
	t.Helper()
	e := entryOf(t, in.Meta, in.Data)
	if err := f.record(context.Background(), []*pipeline.Entry{e}); err != nil {
		t.Fatal(err)
	}
	return e.Out, e.Err
}

// entryOf is a message as a reader of EPISODES gets it.
func entryOf(t testing.TB, meta events.Meta, p events.Payload) *pipeline.Entry {
	t.Helper()
	subject, header, body, err := events.Encode(meta, p)
	if err != nil {
		t.Fatal(err)
	}
	return pipeline.NewEntry(events.Raw{
		Subject: subject, Header: header, Body: body, Stream: Stream, StreamID: "EPISODES@1", Sequence: meta.Sequence, Time: noon, Delivery: 1,
	})
}

func said(id, content string) events.Event[events.EpisodeRecorded] {
	return saidIn(alice, id, content)
}

func saidIn(s scope.Scope, id, content string) events.Event[events.EpisodeRecorded] {
	return events.Event[events.EpisodeRecorded]{
		Meta: events.Meta{
			ID: id, Source: "app", Scope: s, Kind: events.KindEpisodeRecorded,
			Time: noon.Add(-time.Hour), Arrived: noon, CorrelationID: "c-" + id, Sequence: 7, Delivery: 1,
		},
		Data: events.EpisodeRecorded{Scope: s, Role: events.RoleUser, Content: content},
	}
}

// entries are episodes as a reader gets them.
func entries(t testing.TB, in ...events.Event[events.EpisodeRecorded]) []*pipeline.Entry {
	t.Helper()
	out := make([]*pipeline.Entry, len(in))
	for i, e := range in {
		out[i] = entryOf(t, e.Meta, e.Data)
	}
	return out
}

// ended is the end of a session.
func ended(t testing.TB, s scope.Scope, last uint64) *pipeline.Entry {
	t.Helper()
	meta := events.Meta{ID: "end", Source: "app", Scope: s, Kind: events.KindSessionEnded, Time: noon, Sequence: 8}
	return entryOf(t, meta, events.SessionEnded{Scope: s, Cause: events.EndIdle, LastOrdinal: last})
}
