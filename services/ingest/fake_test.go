package ingest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/embed"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	alice = scope.Scope{Project: "p", User: "alice", Session: "s1"}
)

// fakeEpisodes keeps episodes by id, one fact scope each.
type fakeEpisodes struct {
	mu     sync.Mutex
	err    error
	puts   []memory.Episode
	ends   []events.SessionEnd
	states map[scope.Scope]memory.State
}

func (f *fakeEpisodes) PutEpisode(_ context.Context, e memory.Episode) (store.Put, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return store.Put{}, f.err
	}
	state := f.state(e.Scope.Fact())
	for _, known := range f.puts {
		if known.Scope == e.Scope && known.Source == e.Source && known.ID == e.ID {
			conflict := known.Content != e.Content || known.Role != e.Role || known.Mode != e.Mode
			return store.Put{Episode: known, Known: !conflict, Conflict: conflict, State: state}, nil
		}
	}
	state.LastOrdinal++
	f.states[state.Scope] = state
	e.Ordinal = state.LastOrdinal
	f.puts = append(f.puts, e)
	return store.Put{Episode: e, State: state}, nil
}

func (f *fakeEpisodes) PutEpisodes(ctx context.Context, es []memory.Episode) ([]store.Put, error) {
	puts := make([]store.Put, len(es))
	for i, e := range es {
		var err error
		if puts[i], err = f.PutEpisode(ctx, e); err != nil {
			return nil, err
		}
	}
	return puts, nil
}

func (f *fakeEpisodes) EndSession(_ context.Context, session scope.Scope, end events.SessionEnd) (memory.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ends = append(f.ends, end)
	return f.state(session.Fact()), f.err
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

// fakeVectors is a list of texts, and what they were given.
type fakeVectors struct {
	mu      sync.Mutex
	err     error
	pending []store.PendingVector
	done    []string
	calls   int
}

func (f *fakeVectors) add(texts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range texts {
		f.pending = append(f.pending, store.PendingVector{Ref: store.VectorRef{ID: text}, Text: text})
	}
}

func (f *fakeVectors) PendingVectors(_ context.Context, limit int) ([]store.PendingVector, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return slices.Clone(f.pending[:min(limit, len(f.pending))]), f.err
}

func (f *fakeVectors) PutVectors(_ context.Context, vectors []store.Vector) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range vectors {
		f.done = append(f.done, v.Ref.ID)
		f.pending = slices.DeleteFunc(f.pending, func(p store.PendingVector) bool { return p.Ref == v.Ref })
	}
	return nil
}

// fakeEmbedder refuses the texts in poison, or everything while it is down.
type fakeEmbedder struct {
	mu     sync.Mutex
	down   bool
	poison []string
	calls  int
	batch  int // the largest seen
}

func (*fakeEmbedder) Info() embed.Info { return embed.Info{Name: "fake", Version: "1", Dimensions: 1} }

func (f *fakeEmbedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.batch = max(f.batch, len(texts))
	if f.down {
		return nil, errors.New("connection refused")
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if slices.Contains(f.poison, text) {
			return nil, errors.New("cannot embed this")
		}
		vectors[i] = []float32{1}
	}
	return vectors, nil
}

type fixture struct {
	*Service
	episodes *fakeEpisodes
	vectors  *fakeVectors
	embedder *fakeEmbedder
}

func newFixture(t *testing.T, cfg Config) fixture {
	t.Helper()
	f := fixture{episodes: new(fakeEpisodes), vectors: new(fakeVectors), embedder: new(fakeEmbedder)}
	s, err := New(cfg, Deps{
		Episodes: f.episodes, Vectors: f.vectors, Embedder: f.embedder,
		Now: func() time.Time { return noon },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Service = s
	return f
}

func (f fixture) recordOne(ctx context.Context, in events.Event[events.EpisodeRecorded]) ([]events.Payload, error) {
	return f.record(ctx, []events.Event[events.EpisodeRecorded]{in})
}

func said(id, content string) events.Event[events.EpisodeRecorded] {
	return events.Event[events.EpisodeRecorded]{
		Meta: events.Meta{
			ID: id, Source: "app", Scope: alice, Kind: events.KindEpisodeRecorded,
			Time: noon.Add(-time.Hour), Arrived: noon, CorrelationID: "c-" + id, Sequence: 7, Delivery: 1,
		},
		Data: events.EpisodeRecorded{Scope: alice, Role: events.RoleUser, Content: content},
	}
}
