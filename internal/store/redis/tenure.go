package redis

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// maxRead bounds how many states are remembered.
const maxRead = 1024

// tenure is the time during which a store works on one generation in one epoch. A call
// that depends on its reads names one tenure throughout.
type tenure struct {
	layout
	// pass is the epoch that its writes name to the epoch record, or the loss that is being
	// mended. It is empty in a generation under construction, which has no epoch record.
	pass string
	// spaces are the vector spaces, as of the last look at them.
	spaces atomic.Pointer[meta]
	// failures is how many rows the index was last seen to have left out.
	failures atomic.Uint64
	// spans are the fact scopes that selectors span, see [Store.spanned].
	spans store.Memo[string, []scope.Scope]
	// read are the rows of scopes that State has read, for the write that mostly follows.
	// Their ver guards such a write, so one that was read too early costs an attempt.
	read  store.Memo[string, fields]
	turns sync.Map // of *takingTurns, by the number of the space
	fresh freshTexts
	said  saidRows
}

func (s *Store) tenure() *tenure { return s.held.Load() }

func (s *Store) layout() layout { return s.tenure().layout }

func (s *Store) place(fact scope.Scope) place { return s.tenure().place(fact) }

// take begins a tenure of what the server holds of a generation.
func (s *Store) take(ctx context.Context, generation uint64, pass string) error {
	t := &tenure{layout: layout{s.cfg.Namespace, generation}, pass: pass}
	m, _, err := s.readMeta(ctx, t.layout)
	if err != nil {
		return fmt.Errorf("take generation %d: %w", generation, err)
	}
	t.spaces.Store(&m)
	s.held.Store(t)
	return nil
}
