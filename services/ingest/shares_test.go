package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/pkg/scope"
)

// halves divides readers between the processes p1 and p2.
type halves struct{}

func (halves) Share(_ context.Context, _ string, readers []string, process string, ttl time.Duration) ([]string, error) {
	half := len(readers) / 2
	switch {
	case ttl <= 0:
		return nil, nil
	case process == "p1":
		return readers[:half], nil
	}
	return readers[half:], nil
}

// TestTwoReplicasEmbedEachTextOnce.
func TestTwoReplicasEmbedEachTextOnce(t *testing.T) {
	t.Parallel()
	a, b := newFixture(t, Config{EmbedBatch: 8}), newFixture(t, Config{EmbedBatch: 8})
	b.deps.Vectors, b.deps.Embedders = a.vectors, embed.Only(a.embedder)
	const users, each = 40, 5
	for u := range users {
		for i := range each {
			a.vectors.addIn(scope.Scope{Project: "p", User: fmt.Sprint(u)}, fmt.Sprintf("text %d of %d", i, u))
		}
	}
	var both sync.WaitGroup
	for process, f := range map[string]fixture{"p1": a, "p2": b} {
		f.deps.Shares = halves{}
		f.share(t, process)
		both.Go(func() {
			if _, err := f.embed(t.Context(), noon); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if len(a.vectors.done) != users*each || len(a.embedder.asked) != users*each {
		t.Errorf("%d vectors of %d texts, want %d", len(a.vectors.done), len(a.embedder.asked), users*each)
	}
	for text, n := range a.embedder.asked {
		if n != 1 {
			t.Errorf("%q was embedded %d times", text, n)
		}
	}
}

// TestAProcessWithoutAShareEmbedsNothing.
func TestAProcessWithoutAShareEmbedsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	f.vectors.add("text")
	f.shared(nil)
	if _, err := f.embed(t.Context(), noon); err != nil || f.vectors.calls != 0 || f.embedder.calls != 0 {
		t.Errorf("%v; asked the store %d times, the embedder %d times", err, f.vectors.calls, f.embedder.calls)
	}
	f.share(t, "p1")
	if _, err := f.embed(t.Context(), noon); err != nil || len(f.vectors.done) != 1 {
		t.Errorf("%v; done %v once it has its share", err, f.vectors.done)
	}
}

// TestAProjectWithManyTextsDoesNotHoldUpAnother: the one text is in the first round
// after it came.
func TestAProjectWithManyTextsDoesNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{EmbedBatch: 10, EmbedParallel: 1})
	at := noon
	f.deps.Now = func() time.Time {
		at = at.Add(maxRun / 10)
		return at
	}
	f.vectors.addIn(scope.Scope{Project: "a", User: "u"}, texts(1000)...)
	f.vectors.addIn(scope.Scope{Project: "b", User: "u"}, "the one text")
	if _, err := f.embed(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if at := slices.Index(f.vectors.done, "the one text"); at < 0 || at >= 10 {
		t.Errorf("the one text was embedded after %d others", at)
	}
	if len(f.vectors.pending) < 800 {
		t.Errorf("one run left %d of a backlog of 1001 texts", len(f.vectors.pending))
	}
}
