package embed_test

import (
	"context"
	"testing"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/embedtest"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/embed/static"
)

func mixed(t *testing.T) embed.Embedder {
	t.Helper()
	e, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	return embed.Fallback(e, local.New(), static.Covers)
}

func TestFallback(t *testing.T) {
	t.Parallel()
	embedtest.RunAll(t, mixed, embedtest.Options{})
}

// TestFallbackReadsOtherScripts: of texts that the table does not cover those with words
// in common are near, and no other is.
func TestFallbackReadsOtherScripts(t *testing.T) {
	t.Parallel()
	e := mixed(t)
	texts := []string{
		"Где служит мой брат?", "Мой брат Степан служит на флоте.", "Кота подобрали на даче.", "I picked up the car.",
		"我太太是小学语文老师", "我太太是谁", "车还没买",
	}
	v, err := e.Embed(context.Background(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, false, false, true, false, false, false} {
		if embed.Covers(e, texts[i]) != want {
			t.Errorf("%q: covered is not %v", texts[i], want)
		}
	}
	for _, c := range []struct{ question, near, far int }{{0, 1, 2}, {0, 1, 3}, {5, 4, 6}, {5, 4, 3}} {
		if near, far := dot(v[c.question], v[c.near]), dot(v[c.question], v[c.far]); near < 0.3 || far > 0.2 {
			t.Errorf("%q is by %.2f near to %q and by %.2f to %q", texts[c.question], near, texts[c.near], far, texts[c.far])
		}
	}
}

func dot(a, b []float32) (sum float32) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
