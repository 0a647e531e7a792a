package ingest

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func texts(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("text %03d", i)
	}
	return out
}

func TestEmbedUntilNothingIsPending(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{EmbedBatch: 10, EmbedParallel: 3})
	f.vectors.add(texts(105)...)
	if _, err := f.embed(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if len(f.vectors.pending) != 0 || len(f.vectors.done) != 105 {
		t.Errorf("%d pending, %d done", len(f.vectors.pending), len(f.vectors.done))
	}
	if f.embedder.batch > 10 {
		t.Errorf("a batch of %d, want at most 10", f.embedder.batch)
	}
}

func TestEmbedderDownCostsFewCallsAndRecovers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{EmbedBatch: 64, EmbedParallel: 1})
	f.vectors.add(texts(64)...)
	f.embedder.down = true
	now, rounds := noon, 0
	for ; now.Before(noon.Add(time.Minute)); now = now.Add(50 * time.Millisecond) {
		before := f.embedder.calls
		if _, err := f.embed(t.Context(), now); err != nil {
			rounds++
		}
		if n := f.embedder.calls - before; n > 2 {
			t.Fatalf("%d calls in one round to an embedder that is down", n)
		}
	}
	if rounds < 5 || rounds > 12 {
		t.Errorf("%d rounds in a minute, want a growing pause", rounds)
	}
	f.embedder.down = false
	if _, err := f.embed(t.Context(), now.Add(30*time.Second)); err != nil {
		t.Fatal(err)
	}
	if len(f.vectors.pending) != 0 || f.paused[0] != (backoff{first: firstBackoff, most: 30 * time.Second}) {
		t.Errorf("%d pending, %+v after recovery", len(f.vectors.pending), f.paused[0])
	}
}

func TestEmbeddingRestsWhileEpisodesAreStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{EmbedBatch: 10, EmbedParallel: 1, EmbedInterval: 50 * time.Millisecond})
	f.vectors.add(texts(36)...)
	for i, step := range []struct {
		at     time.Duration
		stored bool
		done   int
	}{
		{0, true, 10},
		{10 * time.Millisecond, true, 10},
		{50 * time.Millisecond, true, 20},
		{100 * time.Millisecond, true, 30},
		{150 * time.Millisecond, true, 36},
		{259 * time.Millisecond, true, 36}, // texts gather after six
		{260 * time.Millisecond, true, 37},
		{261 * time.Millisecond, true, 37},
		{262 * time.Millisecond, false, 37},
		{445 * time.Millisecond, false, 58}, // no episode is being stored
	} {
		switch step.done {
		case 37:
			f.vectors.add(fmt.Sprint("late ", i))
		case 58:
			f.vectors.add(texts(19)...)
		}
		if step.stored {
			if _, err := f.recordOne(t, said(fmt.Sprint(i), "hello")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.embed(t.Context(), noon.Add(step.at)); err != nil {
			t.Fatal(err)
		}
		if len(f.vectors.done) != step.done {
			t.Errorf("%v: %d embedded, want %d", step.at, len(f.vectors.done), step.done)
		}
	}
}

// TestASpaceIsBuiltWhileTextsCome: texts that come all the time, and are embedded in the
// served space first, do not keep the space under construction from its end.
func TestASpaceIsBuiltWhileTextsCome(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{EmbedBatch: 10, EmbedParallel: 1, EmbedInterval: 50 * time.Millisecond})
	f.vectors.building = true
	f.vectors.add(texts(40)...)
	now := noon
	for i := 0; f.vectors.building; i++ {
		if i == 100 {
			t.Fatalf("%d texts are pending after 100 rounds", len(f.vectors.pending))
		}
		f.vectors.add(fmt.Sprint("new ", i))
		if _, err := f.recordOne(t, said(fmt.Sprint(i), "hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := f.embed(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(200 * time.Millisecond)
	}
	if most := int(now.Sub(noon)/idleMost) + 1; f.vectors.moves > most {
		t.Errorf("the spaces were moved %d times in %v, want at most %d", f.vectors.moves, now.Sub(noon), most)
	}
}

func TestStoreErrorEndsTheRound(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	f.vectors.err = errors.New("locked")
	if _, err := f.embed(t.Context(), noon); err == nil || f.vectors.calls != 1 {
		t.Errorf("embed = %v after %d calls", err, f.vectors.calls)
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	if n := len(f.Stages()); n != 2 || f.Name() != "ingest" {
		t.Errorf("%s has %d stages", f.Name(), n)
	}
	f.Wake()
	f.Wake() // must not block
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the zero value is refused: %v", err)
	}
	for name, cfg := range map[string]Config{
		"max_content":    {MaxContent: -1},
		"max_metadata":   {MaxMetadata: 2 << 20},
		"embed_batch":    {EmbedBatch: -5},
		"embed_interval": {EmbedInterval: -time.Second},
	} {
		if _, err := New(cfg, Deps{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("missing dependencies are accepted")
	}
}
