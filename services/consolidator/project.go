package consolidator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// head is the part of an effect that says which one it is. Decoding the rest, up
// to a megabyte of facts, would be waste where the store has it.
type head struct {
	events.Header
	Revision uint64 `json:"revision"`
}

// Kind implements [events.Payload].
func (head) Kind() events.Kind { return events.KindEffectCommitted }

// Validate implements [events.Payload].
func (h head) Validate() error {
	if err := h.Scope.Validate(); err != nil {
		return &events.FieldError{Field: "scope", Code: events.CodeInvalidField, Reason: err.Error()}
	}
	return nil
}

// scopesAtOnce bounds the scopes that are brought up to date at a time.
const scopesAtOnce = 64

// errStoring: what the store applies rests on episodes that ingest is about to
// store again.
var errStoring = errors.New("consolidator: episodes of the scope are still being stored")

// unapplied is an effect that the store may lack.
type unapplied struct {
	entry *pipeline.Entry
	head  head
}

// project applies effects that the store lacks, those of each scope in the order of
// AUDIT: what a crash between commit and apply left, what another process has yet to
// apply, and all that a store lacks that was restored from an older copy. A scope
// whose effects cannot be applied keeps no other waiting.
func (s *Service) project(ctx context.Context, in []*pipeline.Entry) error {
	var group errgroup.Group
	group.SetLimit(scopesAtOnce)
	for fact, effects := range s.unknown(ctx, in) {
		group.Go(func() (crash error) {
			defer func() {
				if value := recover(); value != nil {
					crash = fmt.Errorf("%v\n%s", value, debug.Stack())
				}
			}()
			s.catchUp(ctx, fact, effects)
			return nil
		})
	}
	if crash := group.Wait(); crash != nil {
		panic(crash) // where the runtime recovers it
	}
	return nil
}

// ownWait bounds how long a batch waits for what this process is committing. One
// commit that hangs must not stop the projection of the other scopes.
const ownWait = time.Second

// unknown returns, by scope, the effects that this process did not commit and apply
// itself. One that comes again is looked up: the store may have lost it.
func (s *Service) unknown(ctx context.Context, in []*pipeline.Entry) map[scope.Scope][]unapplied {
	ctx, cancel := context.WithTimeout(ctx, ownWait)
	defer cancel()
	found := map[scope.Scope][]unapplied{}
	read := s.read.Load()
	for _, e := range in {
		if e.Err != nil || e.Meta.Kind != events.KindEffectCommitted {
			continue // AUDIT keeps other events, too
		}
		h, err := pipeline.DecodeEntry[head](e)
		if err != nil {
			e.Err = err
			continue
		}
		s.own.wait(ctx, h.Data.Scope)
		if e.Meta.Sequence <= read || !s.own.has(h.Data) {
			found[h.Data.Scope] = append(found[h.Data.Scope], unapplied{e, h.Data})
		}
		s.read.Store(max(s.read.Load(), e.Meta.Sequence))
	}
	return found
}

// catchUp applies effects of one scope. Where one cannot be applied, those behind it
// wait. An effect that cannot be read is buried by itself; the next one then finds a
// gap, and is buried too: `palimpsest rebuild` applies what AUDIT and the audit log
// have.
func (s *Service) catchUp(ctx context.Context, fact scope.Scope, effects []unapplied) {
	before, failed := s.deps.Applier.State(ctx, fact)
	if failed != nil {
		failed = fmt.Errorf("read state: %w", failed)
		for _, e := range effects {
			e.entry.Err = failed
		}
		return
	}
	at := reached{fact: before.Revision}
	for _, e := range effects {
		if failed == nil && e.head.Revision > at[fact] && e.head.Incarnation >= before.Incarnation {
			err := s.apply(ctx, at, e.entry)
			if errors.As(err, new(*GapError)) {
				// Nothing has what is missing, so the same effect will always fail.
				err = pipeline.Reject(events.CodePoison, "revision", err)
			}
			if pipeline.IsRefused(err) {
				e.entry.Err = err
				continue
			}
			failed = err
		}
		e.entry.Err = failed
	}
	last := effects[len(effects)-1].entry
	if err := s.settle(ctx, before, at[fact] > before.Revision); err != nil && last.Err == nil {
		last.Err = err
	}
}

// apply applies one effect, and before it those that AUDIT dropped.
func (s *Service) apply(ctx context.Context, at reached, e *pipeline.Entry) error {
	effect, err := pipeline.DecodeEntry[events.EffectCommitted](e)
	if err != nil {
		return err
	}
	applied, err := s.reach(ctx, at, effect)
	for _, a := range applied {
		e.Out = append(e.Out, announce(a)...)
	}
	if pipeline.IsRefused(err) {
		return unread(err) // another effect is
	}
	return err
}

// settle lets a scope count on from its highest watermark, where the stream no
// longer has all episodes that were consolidated. The next one would otherwise get
// an ordinal that counts as consolidated. Before that, ingest must have stored what
// the stream has. changed says that effects were applied since state was read.
func (s *Service) settle(ctx context.Context, state memory.State, changed bool) (err error) {
	if s.deps.Behind == nil {
		return nil
	}
	fact := state.Scope
	if changed {
		if state, err = s.deps.Applier.State(ctx, fact); err != nil {
			return fmt.Errorf("read state: %w", err)
		}
	}
	if highest(state) <= state.LastOrdinal {
		return nil
	}
	switch behind, err := s.deps.Behind(ctx, fact); {
	case err != nil:
		return fmt.Errorf("look for episodes that are not stored: %w", err)
	case behind:
		return errStoring
	}
	if err := s.deps.Applier.Advance(ctx, fact); err != nil {
		return fmt.Errorf("advance scope: %w", err)
	}
	return nil
}

func highest(state memory.State) uint64 {
	return slices.Max(append(slices.Collect(maps.Values(state.Watermarks)), 0))
}
