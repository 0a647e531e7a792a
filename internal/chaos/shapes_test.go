package chaos

import (
	"context"
	"strings"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// known is a memory in which each user has watermarks.
type known struct {
	scopes
	marks map[string]uint64
}

func (k known) Projects(context.Context) ([]string, error) {
	return []string{scope.DefaultProject}, nil
}

func (k known) Snapshot(_ context.Context, fact scope.Scope) (store.Snapshot, error) {
	return store.Snapshot{Scope: fact, Watermarks: map[string]uint64{memory.RuleTurn: k.marks[fact.User]}}, nil
}

// TestShapesAreCompared: what only one of two memories knows makes the verdict a
// bad one, and is named.
func TestShapesAreCompared(t *testing.T) {
	t.Parallel()
	w := drawn(t, Size{Seed: 1, Episodes: 20, Users: 2, OneVoice: true})
	var held []scope.Scope
	for _, u := range w.Users {
		held = append(held, u.scope())
	}
	several := known{scopes{held: held}, map[string]uint64{"user-0": 10, "user-1": 10}}
	for last, lines := range map[uint64]int{10: 0, 9: 2} {
		one := known{scopes{held: held}, map[string]uint64{"user-0": 10, "user-1": last}}
		v := Verdict{OK: true}
		if err := v.CompareShapes(t.Context(), w, several, one); err != nil {
			t.Fatal(err)
		}
		if v.OK != (lines == 0) || v.Shapes.Lines != lines || len(v.Findings) != lines || (v.Shapes.One == v.Shapes.Several) != v.OK {
			t.Errorf("with watermark %d: %+v, %+v", last, v, v.Shapes)
		}
		for _, f := range v.Findings {
			if f.Where != "user-1" || !strings.Contains(f.What, "watermark") {
				t.Errorf("found %+v", f)
			}
		}
	}
}
