package graph

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// edges is a graph.
type edges []events.Edge

func (g edges) Edges(_ context.Context, _ scope.Scope, nodes []string) (list []events.Edge, _ error) {
	for _, e := range g {
		if slices.Contains(nodes, e.SourceID) || slices.Contains(nodes, e.TargetID) {
			list = append(list, e)
		}
	}
	return list, nil
}

func edge(from, to string, hours int) events.Edge {
	return events.Edge{ID: from + to, SourceID: from, TargetID: to, ValidFrom: noon.Add(time.Duration(hours) * time.Hour)}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	ended := edge("a", "old", -9)
	until := noon.Add(-time.Hour)
	ended.ValidUntil = &until
	g := edges{edge("a", "b", -3), edge("b", "c", -3), edge("c", "a", -3), edge("c", "d", -3), edge("x", "a", -2), ended, edge("a", "later", 1)}
	for name, tc := range map[string]struct {
		limits Limits
		want   []string
	}{
		"one step, newest first":  {Limits{1, 9, 9}, []string{"xa 1", "ab 1", "ca 1"}},
		"a cycle ends":            {Limits{9, 9, 9}, []string{"xa 1", "ab 1", "ca 1", "bc 2", "cd 2"}},
		"fan-out":                 {Limits{9, 1, 9}, []string{"xa 1"}},
		"edges in all":            {Limits{9, 9, 2}, []string{"xa 1", "ab 1"}},
		"no depth, nothing known": {Limits{0, 9, 9}, nil},
	} {
		steps, err := Walk(t.Context(), g, scope.Scope{}, []string{"a"}, noon, tc.limits)
		var got []string
		for _, s := range steps {
			got = append(got, fmt.Sprintf("%s %d", s.ID, s.Depth))
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestWalkLaws: over any graph a walk ends, takes no edge twice, keeps its limits, and
// each edge hangs on one of a depth less or on the start.
func TestWalkLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var g edges
		node := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		for i := range rapid.IntRange(0, 20).Draw(t, "edges") {
			e := edge(node.Draw(t, "from"), node.Draw(t, "to"), -i%3)
			e.ID += fmt.Sprint(i)
			g = append(g, e)
		}
		limits := Limits{rapid.IntRange(0, 4).Draw(t, "depth"), rapid.IntRange(0, 4).Draw(t, "fan-out"), rapid.IntRange(0, 12).Draw(t, "all")}
		steps, err := Walk(context.Background(), g, scope.Scope{}, []string{"a"}, noon, limits)
		if err != nil || len(steps) > limits.Edges {
			t.Fatalf("%v, %d steps", err, len(steps))
		}
		at, seen := map[string]int{"a": 0}, map[string]bool{}
		for _, s := range steps {
			from, known := at[s.SourceID]
			to, other := at[s.TargetID]
			if seen[s.ID] || s.Depth > limits.Depth || !(known && from < s.Depth) && !(other && to < s.Depth) {
				t.Fatalf("step %+v of %+v", s, steps)
			}
			seen[s.ID] = true
			for _, end := range []string{s.SourceID, s.TargetID} {
				if _, met := at[end]; !met {
					at[end] = s.Depth
				}
			}
		}
	})
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	e := events.Entity{CanonicalName: "Fenwick Labs", Type: events.EntityOrganization, Aliases: []string{"Fenwick"}, MentionCount: 2, FirstSeen: noon}
	const want = "Fenwick Labs is an organization, also called Fenwick, mentioned 2 times since 2026-03-01. The user works at Fenwick Labs."
	if got := Describe(e, []string{"The user works at Fenwick Labs."}); got != want {
		t.Errorf("got %s", got)
	}
	if got := Describe(events.Entity{CanonicalName: "Anna", MentionCount: 1, FirstSeen: noon}, nil); got != "Anna is a thing, mentioned once since 2026-03-01." {
		t.Errorf("got %s", got)
	}
}
