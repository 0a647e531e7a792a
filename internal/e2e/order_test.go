package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var cities = []string{
	"Oslo", "Bergen", "Lisbon", "Quito", "Hanoi", "Tunis", "Perth", "Turin", "Kyoto", "Dakar",
	"Lima", "Riga", "Seoul", "Basel", "Cairo", "Delhi", "Malmo", "Porto",
}

// orderPerScope lets several users move from city to city at once, each
// in turn on two devices: the last word holds, and history tells the moves in
// the order in which they were told.
func orderPerScope(t *testing.T, i *instance) {
	t.Helper()
	var wait sync.WaitGroup
	var users []scope.Scope
	for u := range 3 {
		who := i.person(fmt.Sprintf("user %d", u))
		users = append(users, who)
		wait.Go(func() {
			for n := range cities {
				on := who
				on.Session = fmt.Sprintf("device %d", n%2)
				i.say(on, turn("I moved to "+cities[(n+u)%len(cities)]+"."))
			}
		})
	}
	wait.Wait()
	for u, who := range users {
		sel := of(who)
		i.settled(sel, len(cities))
		f := wantOne(t, i.facts(sel), cities[(len(cities)-1+u)%len(cities)])
		wantHistory(t, i, f.ID, u)
	}
	for _, who := range users {
		wantProvenance(t, i, of(who))
	}
	wantReplayed(t, i, i.whole())
}

func wantHistory(t *testing.T, i *instance, id string, first int) {
	t.Helper()
	eventually(t, "the whole history", func() error {
		h, err := i.api.History(t.Context(), id)
		if err != nil {
			return err
		}
		if len(h.Changes) < len(cities) {
			return fmt.Errorf("%d changes", len(h.Changes))
		}
		for n, c := range h.Changes {
			if want := cities[(n+first)%len(cities)]; !strings.Contains(c.NewMemory, want) {
				t.Errorf("change %d is to %q, want %s", n, c.NewMemory, want)
			}
		}
		return nil
	})
}

// nothingChangesWithoutADelta follows every row that an effect changed
// to deltas that say where it came from.
func nothingChangesWithoutADelta(t *testing.T, i *instance) {
	i.tellAll(i.scripts(3, 24), 0, nil)
	i.settled(i.whole(), 3*24)
	wantProvenance(t, i, i.whole())
}

func wantProvenance(t *testing.T, i *instance, sel scope.Selector) {
	t.Helper()
	said := map[string]bool{}
	for _, e := range i.recent(sel) {
		said[e.ID] = true
	}
	effects := i.effects(sel)
	if len(effects) == 0 {
		t.Fatal("nothing was audited")
	}
	for _, e := range effects {
		addresses := map[string]bool{}
		for _, a := range e.Applied {
			addresses[a.After] = true
			p := a.Delta.Provenance()
			if len(p.SourceEpisodeIDs) == 0 || p.RuleID == "" || p.DecidedBy == "" || p.PromotionTS.IsZero() || p.Reason == "" {
				t.Errorf("revision %d of %s: %+v", e.Revision, e.Scope, p)
			}
			for _, id := range p.SourceEpisodeIDs {
				if !said[id] {
					t.Errorf("revision %d of %s: no message has the id %s", e.Revision, e.Scope, id)
				}
			}
		}
		if len(e.Applied) == 0 && len(e.Facts)+len(e.Versions)+len(e.Entities)+len(e.Edges)+len(e.Holds) > 0 {
			t.Errorf("revision %d of %s changes rows without a delta", e.Revision, e.Scope)
		}
	}
}

// replayable builds memory anew from the audit stream, by copying alone.
func replayable(t *testing.T, i *instance) {
	i.tellAll(i.scripts(3, 24), 0, nil)
	i.settled(i.whole(), 3*24)
	wantReplayed(t, i, i.whole())
}

// wantReplayed folds the after-images of the audit stream and compares the
// outcome with the live export.
func wantReplayed(t *testing.T, i *instance, sel scope.Selector) {
	t.Helper()
	replayed := map[scope.Scope]*copied{}
	for _, e := range i.effects(sel) {
		c := replayed[e.Scope]
		if c == nil {
			c = newCopied()
			replayed[e.Scope] = c
		}
		if e.Revision != c.revision+1 {
			t.Errorf("%s: revision %d follows %d", e.Scope, e.Revision, c.revision)
		}
		c.apply(e)
	}
	var lines []memory.Line
	for s, c := range replayed {
		of, err := memory.Export(c.snapshot(s), memory.ExportFull)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, of...)
	}
	memory.SortLines(lines)
	var want bytes.Buffer
	if err := memory.WriteExport(&want, lines); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(i.export(sel, false), want.String()); diff != "" {
		t.Errorf("memory (-live +replayed):\n%s", diff)
	}
}

// copied is the rows of one fact scope, copied from effects.
type copied struct {
	revision   uint64
	facts      map[string]events.Fact
	versions   map[string]events.Fact
	entities   map[string]events.Entity
	edges      map[string]events.Edge
	holds      map[string]events.Hold
	watermarks map[string]uint64
}

func newCopied() *copied {
	return &copied{
		facts: map[string]events.Fact{}, versions: map[string]events.Fact{}, entities: map[string]events.Entity{},
		edges: map[string]events.Edge{}, holds: map[string]events.Hold{}, watermarks: map[string]uint64{},
	}
}

func (c *copied) apply(e events.EffectCommitted) {
	c.revision = e.Revision
	put(c.facts, e.Facts, func(f events.Fact) string { return f.ID })
	put(c.versions, e.Versions, func(f events.Fact) string { return fmt.Sprintf("%s@%d", f.ID, f.Revision) })
	put(c.entities, e.Entities, func(x events.Entity) string { return x.ID })
	put(c.edges, e.Edges, func(x events.Edge) string { return x.ID })
	put(c.holds, e.Holds, func(h events.Hold) string { return h.ID })
	for _, id := range e.Released {
		delete(c.holds, id)
	}
	if e.Watermark != nil {
		c.watermarks[e.Rule] = *e.Watermark
	}
}

func put[T any](into map[string]T, rows []T, key func(T) string) {
	for _, r := range rows {
		into[key(r)] = r
	}
}

func (c *copied) snapshot(s scope.Scope) memory.Snapshot {
	return memory.Snapshot{
		Scope: s, Revision: c.revision, Watermarks: c.watermarks,
		Facts: values(c.facts), Versions: values(c.versions), Entities: values(c.entities),
		Edges: values(c.edges), Holds: values(c.holds),
	}
}

func values[T any](m map[string]T) []T {
	out := make([]T, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
