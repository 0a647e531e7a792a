package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// fakeVectors is a list of texts to embed and the results.
type fakeVectors struct {
	mu      sync.Mutex
	err     error
	pending []store.PendingVector
	done    []string
	refused []store.RefusedVector
	calls   int
	// building: there is a space 2 under construction. The served space is 1.
	building bool
	moves    int
}

func (f *fakeVectors) add(texts ...string) { f.addIn(scope.Scope{Project: "p", User: "u"}, texts...) }

func (f *fakeVectors) addIn(s scope.Scope, texts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range texts {
		for _, sp := range f.spaces().All() {
			f.pending = append(f.pending, store.PendingVector{Ref: store.VectorRef{Space: sp.ID, Scope: s, ID: text}, Text: text})
		}
	}
}

// PendingVectors takes one text of each project in turn.
func (f *fakeVectors) PendingVectors(_ context.Context, id uint64, limit int, partitions ...int) ([]store.PendingVector, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	byProject := map[string][]store.PendingVector{}
	for _, p := range f.pending {
		if p.Ref.Space == id && (len(partitions) == 0 || slices.Contains(partitions, p.Ref.Scope.Partition(events.Partitions))) {
			byProject[p.Ref.Scope.Project] = append(byProject[p.Ref.Scope.Project], p)
		}
	}
	type turn struct {
		n int
		store.PendingVector
	}
	var turns []turn
	for _, list := range byProject {
		for i, p := range list {
			turns = append(turns, turn{i, p})
		}
	}
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.Ref.Scope.Project, b.Ref.Scope.Project))
	})
	var list []store.PendingVector
	for _, t := range turns[:min(limit, len(turns))] {
		list = append(list, t.PendingVector)
	}
	return list, f.err
}

func (f *fakeVectors) Spaces() store.Spaces {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spaces()
}

func (f *fakeVectors) spaces() store.Spaces {
	info := (*fakeEmbedder)(nil).Info()
	s := store.Spaces{Served: store.Space{ID: 1, Embedder: info}}
	if f.building {
		s.Next = &store.Space{ID: 2, Embedder: info}
	}
	return s
}

func (*fakeVectors) BuildSpace(context.Context, embed.Info) error { return nil }

func (f *fakeVectors) MoveSpaces(context.Context) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moves++
	f.building = f.building && slices.ContainsFunc(f.pending, func(p store.PendingVector) bool { return p.Ref.Space == 2 })
	return !f.building, nil
}

func (f *fakeVectors) PutVectors(_ context.Context, vectors []store.Vector) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range vectors {
		f.done = append(f.done, v.Ref.ID)
		f.settle(v.Ref)
	}
	return nil
}

func (f *fakeVectors) RefuseVectors(_ context.Context, refused []store.RefusedVector) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range refused {
		f.refused = append(f.refused, v)
		f.settle(v.Ref)
	}
	return nil
}

func (f *fakeVectors) RefusedVectors(context.Context, int) ([]store.RefusedVector, error) {
	return f.refused, nil
}

func (f *fakeVectors) settle(ref store.VectorRef) {
	f.pending = slices.DeleteFunc(f.pending, func(p store.PendingVector) bool { return p.Ref == ref })
}

// fakeEmbedder fails for the texts in poison, each with its error, or for everything
// while it is down.
type fakeEmbedder struct {
	mu     sync.Mutex
	down   bool
	poison map[string]error
	calls  int
	batch  int // the largest seen
	asked  map[string]int
}

// errTooLong is how an embedder says that it will never take a text.
var errTooLong = fmt.Errorf("%w: too long", embed.ErrRefused)

func (*fakeEmbedder) Info() embed.Info { return embed.Info{Name: "fake", Version: "1", Dimensions: 1} }

func (f *fakeEmbedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.batch = max(f.batch, len(texts))
	if f.down {
		return nil, errors.New("connection refused")
	}
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	for _, text := range texts {
		f.asked[text]++
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := f.poison[text]; err != nil {
			return nil, err
		}
		vectors[i] = []float32{1}
	}
	return vectors, nil
}
