package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Reader reads the edges of a fact scope; [palimpsest/internal/store.FactReader] is
// one.
type Reader interface {
	Edges(ctx context.Context, fact scope.Scope, nodes []string) ([]events.Edge, error)
}

// Limits bound a walk.
type Limits struct {
	Depth  int // edges from the start
	FanOut int // edges of one node
	Edges  int // in all
}

// Step is an edge on a walk.
type Step struct {
	events.Edge
	Depth int // 1 for an edge of the start
}

// Walk follows the edges of a fact scope that are valid at now, in both directions and
// breadth-first, from entities of the ids start. It meets each entity and each edge
// once. Of the edges of one node the newest come first, and those beyond the fan-out
// are left out.
func Walk(ctx context.Context, r Reader, fact scope.Scope, start []string, now time.Time, l Limits) ([]Step, error) {
	var steps []Step
	met, taken := map[string]bool{}, map[string]bool{}
	for _, id := range start {
		met[id] = true
	}
	for depth := 1; depth <= l.Depth && len(start) > 0; depth++ {
		edges, err := r.Edges(ctx, fact, start)
		if err != nil {
			return nil, fmt.Errorf("walk: %w", err)
		}
		var next []string
		for _, node := range start {
			for _, e := range ofNode(edges, node, now, l.FanOut) {
				if taken[e.ID] {
					continue
				}
				if len(steps) == l.Edges {
					return steps, nil
				}
				taken[e.ID] = true
				steps = append(steps, Step{e, depth})
				for _, end := range []string{e.SourceID, e.TargetID} {
					if !met[end] {
						met[end] = true
						next = append(next, end)
					}
				}
			}
		}
		start = next
	}
	return steps, nil
}

// ofNode are the valid edges of a node, newest first.
func ofNode(edges []events.Edge, node string, now time.Time, most int) []events.Edge {
	var own []events.Edge
	for _, e := range edges {
		if (e.SourceID == node || e.TargetID == node) && Valid(e, now) {
			own = append(own, e)
		}
	}
	slices.SortFunc(own, func(a, b events.Edge) int {
		return cmp.Or(b.ValidFrom.Compare(a.ValidFrom), cmp.Compare(a.ID, b.ID))
	})
	return own[:min(len(own), most)]
}

// Valid reports whether an edge is valid at t, as facts are.
func Valid(e events.Edge, t time.Time) bool {
	return memory.ValidAt(events.Fact{ValidFrom: e.ValidFrom, ValidUntil: e.ValidUntil}, t)
}
