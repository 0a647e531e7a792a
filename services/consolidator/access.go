package consolidator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// visit is what one batch of accesses comes to for one scope.
type visit struct {
	header events.Header
	ids    []string
	at     time.Time
}

// access coalesces accesses: each fact of a scope counts once a batch, at its last
// return. A redelivered batch counts again: statistics are no promise.
func (s *Service) access(ctx context.Context, in []events.Event[events.FactReturned]) error {
	for _, v := range coalesce(in) {
		state, err := s.deps.Applier.State(ctx, v.header.Scope)
		if err != nil {
			return fmt.Errorf("read state: %w", err)
		}
		if v.header.Incarnation < state.Incarnation {
			continue
		}
		if err := s.deps.Applier.Touch(ctx, v.header.Scope, v.ids, v.at); err != nil {
			return fmt.Errorf("touch facts: %w", err)
		}
	}
	return nil
}

// coalesce groups by scope and incarnation, in order of first appearance.
func coalesce(in []events.Event[events.FactReturned]) []visit {
	type key struct {
		scope       scope.Scope
		incarnation uint64
	}
	at := map[key]int{}
	var out []visit
	for _, e := range in {
		k := key{e.Data.Scope, e.Data.Incarnation}
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			out = append(out, visit{header: e.Data.Header})
		}
		out[i].ids = append(out[i].ids, e.Data.FactIDs...)
		if e.Data.At.After(out[i].at) {
			out[i].at = e.Data.At
		}
	}
	for i := range out {
		slices.Sort(out[i].ids)
		out[i].ids = slices.Compact(out[i].ids)
	}
	return out
}
