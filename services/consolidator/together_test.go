package consolidator

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// crowd is a store that answers nobody before so many ask.
type crowd struct {
	store.Applier
	asking sync.WaitGroup
}

func (c *crowd) State(ctx context.Context, fact scope.Scope) (memory.State, error) {
	c.asking.Done()
	all := make(chan struct{})
	go func() {
		c.asking.Wait()
		close(all)
	}()
	select {
	case <-all:
		return memory.State{Revision: uint64(len(fact.User))}, nil
	case <-ctx.Done():
		return memory.State{}, ctx.Err()
	}
}

// TestScopesAreLookedUpTogether: a start asks for many scopes at once, and judges
// them in their order.
func TestScopesAreLookedUpTogether(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := &crowd{}
	c.asking.Add(abreast)
	var told []uint64
	look := &together{service: &Service{deps: Deps{Applier: c}}, each: func(head audit.Head, state memory.State) {
		if state.Revision != uint64(len(head.Scope.User)) {
			t.Errorf("%s is at revision %d", head.Scope, state.Revision)
		}
		told = append(told, head.Sequence)
	}}
	for n := range abreast {
		head := audit.Head{Scope: scope.Scope{Project: "p", User: fmt.Sprintf("%0*d", n+1, 0)}, Sequence: uint64(n)}
		if err := look.add(ctx, head); err != nil {
			t.Fatal(err)
		}
	}
	for n, sequence := range told {
		if sequence != uint64(n) {
			t.Fatalf("told in the order %v", told)
		}
	}
	if len(told) != abreast {
		t.Errorf("told of %d scopes", len(told))
	}
	if err := look.rest(ctx); err != nil || len(told) != abreast {
		t.Errorf("the rest: %v, %d scopes", err, len(told))
	}
}
