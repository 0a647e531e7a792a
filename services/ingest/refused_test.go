package ingest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
)

func idsOf(refused []store.RefusedVector) (ids []string) {
	for _, v := range refused {
		ids = append(ids, v.Ref.ID)
	}
	slices.Sort(ids)
	return ids
}

// TestRefusedTextsAreSetAsideAndTheRestGoesOn, at once: neither an embedder that says
// so nor one that fails again and again slows down anything else.
func TestRefusedTextsAreSetAsideAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]error{"by its contract": errTooLong, "each time": errors.New("status 500")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, Config{EmbedBatch: 16, EmbedParallel: 2})
			var log bytes.Buffer
			f.deps.Logger = slog.New(slog.NewTextHandler(&log, nil))
			all := texts(40)
			f.vectors.add(all...)
			f.embedder.poison = map[string]error{all[0]: reason, all[9]: reason, all[33]: reason}
			if _, err := f.embed(t.Context(), noon); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(f.embedder.poison)), idsOf(f.vectors.refused)); diff != "" {
				t.Errorf("set aside (-want +got):\n%s", diff)
			}
			if len(f.vectors.pending) != 0 || len(f.vectors.done) != 37 || f.paused[0].at(noon) {
				t.Errorf("%d pending, %d done, paused %v", len(f.vectors.pending), len(f.vectors.done), f.paused)
			}
			if got := f.vectors.refused[0].Reason; !strings.Contains(got, reason.Error()) {
				t.Errorf("reason %q, want %q", got, reason)
			}
			if strings.Count(log.String(), "refuses a text") != 3 {
				t.Errorf("log:\n%s", log.String())
			}
			f.vectors.add("later")
			if _, err := f.embed(t.Context(), noon.Add(time.Second)); err != nil || !slices.Contains(f.vectors.done, "later") {
				t.Errorf("what comes later is not embedded: %v", err)
			}
		})
	}
}

// TestARefusedTextIsNotAskedForAgain, neither later nor by the process that comes
// after this one.
func TestARefusedTextIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	before := newFixture(t, Config{})
	before.vectors.add("bad", "good")
	before.embedder.poison = map[string]error{"bad": errTooLong}
	if _, err := before.embed(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	asked := before.embedder.asked["bad"]
	after := newFixture(t, Config{})
	after.deps.Vectors, after.deps.Embedders = before.vectors, embed.Only(before.embedder)
	for _, s := range []*Service{before.Service, after.Service} {
		if _, err := s.embed(t.Context(), noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if got := before.embedder.asked["bad"]; asked == 0 || got != asked {
		t.Errorf("asked %d times before, %d times in all", asked, got)
	}
}

// TestATextThatFailsOnceIsEmbedded: one failure is not the text's.
func TestATextThatFailsOnceIsEmbedded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	f.vectors.add("text")
	f.deps.Embedders = embed.Only(&failsFirst{fakeEmbedder: f.embedder})
	if _, err := f.embed(t.Context(), noon); err != nil || len(f.vectors.done) != 1 || len(f.vectors.refused) > 0 {
		t.Errorf("%v; done %v, refused %v", err, f.vectors.done, f.vectors.refused)
	}
}

// failsFirst fails the first time it is asked.
type failsFirst struct {
	*fakeEmbedder
	failed bool
}

func (f *failsFirst) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if !f.failed {
		f.failed = true
		return nil, errors.New("status 503")
	}
	return f.fakeEmbedder.Embed(ctx, texts)
}

// TestNothingIsSetAsideWhileTheEmbedderIsDown, or answers too late.
func TestNothingIsSetAsideWhileTheEmbedderIsDown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	f.vectors.add("one", "slow")
	f.embedder.down = true
	if _, err := f.embed(t.Context(), noon); err == nil {
		t.Error("embed hides that the embedder is down")
	}
	f.embedder.down, f.embedder.poison = false, map[string]error{"slow": context.DeadlineExceeded}
	if _, err := f.embed(t.Context(), noon.Add(time.Minute)); err == nil {
		t.Error("embed hides a timeout")
	}
	if len(f.vectors.refused) > 0 || len(f.vectors.pending) == 0 {
		t.Errorf("refused %v, pending %v", f.vectors.refused, f.vectors.pending)
	}
}

// TestAVectorThatIsNoDirectionIsThatOfOneText.
func TestAVectorThatIsNoDirectionIsThatOfOneText(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	all := texts(9)
	f.vectors.add(all...)
	f.deps.Embedders = embed.Only(&notANumber{fakeEmbedder: f.embedder, of: all[4]})
	if _, err := f.embed(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{all[4]}, idsOf(f.vectors.refused)); diff != "" || len(f.vectors.done) != 8 {
		t.Errorf("%d done; %s", len(f.vectors.done), diff)
	}
}

// notANumber answers NaN for one text.
type notANumber struct {
	*fakeEmbedder
	of string
}

func (n *notANumber) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := n.fakeEmbedder.Embed(ctx, texts)
	if i := slices.Index(texts, n.of); i >= 0 && err == nil {
		vectors[i] = []float32{float32(math.NaN())}
	}
	return vectors, err
}
