package app

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
)

// heldEmbedder is of a space of its own, and embeds nothing before it is let go.
type heldEmbedder struct {
	embed.Embedder
	name string
	gate chan struct{}
}

func (e heldEmbedder) Info() embed.Info {
	return embed.Info{Name: e.name, Version: "1", Dimensions: local.Dimensions}
}

func (e heldEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	select {
	case <-e.gate:
		return e.Embedder.Embed(ctx, texts)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestP7EmbedderChanges: the embedder changes under a store that holds vectors, twice.
// Searches go on all the while: by the vectors of the embedder before as long as it can
// be made, else by text, which the answer says.
func TestP7EmbedderChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	asked := func(h *process) (degraded []string) {
		t.Helper()
		nora := "nora"
		found, err := caller(t, h).Search(t.Context(), api.Search{Selector: api.Selector{User: &nora}, Text: "Where is Oslo?", Explain: true})
		if err != nil || len(found.Results) == 0 {
			t.Fatalf("found %+v, %v", found, err)
		}
		if _, by := found.Results[0].Channels["vector"]; by == slices.Contains(found.Degraded, "vector") {
			t.Errorf("found by %v, degraded are %v", found.Results[0].Channels, found.Degraded)
		}
		return found.Degraded
	}
	embedded := func(h *process, name string) {
		t.Helper()
		eventually(t, "all is embedded by "+name, func() error {
			check := h.readiness.Ready(t.Context()).Checks["memory"]
			if check.Details["vectors"] != name || check.Details["vectors_pending"] != uint64(0) || check.Details["vectors_building"] != nil {
				return fmt.Errorf("%+v", check.Details)
			}
			return nil
		})
	}
	h, stop := open(t, dir)
	healed(t, h)
	tell(t, h, "nora", 1, "I live in Oslo.")
	consolidated(t, h, "nora", 1)
	embedded(h, "local@1")
	stop()
	before := "local@1"
	for _, step := range []struct {
		name     string
		degraded []string
	}{{"second", nil}, {"third", []string{"vector"}}} {
		next := heldEmbedder{local.New(), step.name, make(chan struct{})}
		h, stop = openAltered(t, loopback(dir), func(h *process) { h.embedder = next }, func(*process) {})
		healed(t, h)
		details := h.readiness.Ready(t.Context()).Checks["memory"].Details
		if details["vectors"] != before || details["vectors_building"] != step.name+"@1" || details["vectors_building_pending"] == uint64(0) {
			t.Errorf("while %s is built: %v", step.name, details)
		}
		if got := asked(h); !slices.Equal(got, step.degraded) {
			t.Errorf("while %s is built, degraded are %v, want %v", step.name, got, step.degraded)
		}
		close(next.gate)
		before = step.name + "@1"
		embedded(h, before)
		if got := asked(h); got != nil {
			t.Errorf("served by %s, degraded are %v", step.name, got)
		}
		stop()
	}
}

// TestReindex: the command takes a stopped Palimpsest to another embedder, and a check of
// the configuration shows what it has.
func TestReindex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, stop := open(t, dir)
	healed(t, h)
	tell(t, h, "nora", 1, "I live in Oslo.")
	consolidated(t, h, "nora", 1)
	eventually(t, "all is embedded", func() error {
		if stats, err := h.store.Stats(t.Context()); err != nil || stats.VectorsPending > 0 {
			return fmt.Errorf("%d are pending, %w", stats.VectorsPending, err)
		}
		return nil
	})
	stop()
	check := func(want string) {
		t.Helper()
		inv := NewInvocation(t.Context(), terminal.Terminal{Environ: []string{"PALIMPSEST_DATA=" + dir}}, Flags{})
		checked, err := inv.Check(false)
		if err != nil || !checked.OK || !strings.HasPrefix(checked.Vectors, want) {
			t.Errorf("check: %+v, %v, want vectors of %s", checked, err, want)
		}
	}
	check("local@1")
	inv := NewInvocation(t.Context(), terminal.Terminal{Err: io.Discard}, Flags{})
	for _, embedded := range []bool{true, false} {
		out, err := inv.Reindex(dir)
		if err != nil || !strings.HasPrefix(out.To, "static@") || out.Embedded > 0 != embedded {
			t.Errorf("%+v, %v", out, err)
		}
	}
	check("static@")
}
