package consolidator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"palimpsest/internal/audit"
	"palimpsest/internal/failpoint"
	"palimpsest/internal/memory"
	"palimpsest/pkg/scope"
)

// ErrAhead: the store holds effects that AUDIT lacks. One of the two was
// restored from another time; nothing can be committed in such a scope.
var ErrAhead = errors.New("consolidator: the store holds effects that AUDIT lacks")

// Healed counts what [Service.Heal] found.
type Healed struct {
	Scopes int // that AUDIT holds anything of, or held and lost
	Behind int // of which the store lacked effects, and has them now
	Ahead  int // of which AUDIT lacks effects
	Failed int // that could not be rolled forward
}

// manyBehind is from how many scopes on AUDIT is read once for all of them,
// not once for each.
const manyBehind = 16

// healing is one run of [Service.Heal].
type healing struct {
	service *Service
	tape    audit.Tape
	found   Healed
	first   error // the first that could not be healed
	// behind is what the store has of the scopes that lack effects, and from
	// which sequence on AUDIT has more.
	behind reached
	after  uint64
	// dropped are those of which only the audit log has anything.
	dropped []scope.Scope
}

// Heal rolls every scope forward that the store lacks effects of: what a crash
// between commit and apply leaves, or a store restored from an older copy. The
// projector would do so only for what it has not acknowledged. Effects that AUDIT
// dropped since come from the audit log.
//
// What was said must be stored again before, as far as its stream still has it:
// a scope whose watermark ends above its last ordinal goes on from there.
//
// A scope that cannot be healed keeps none of the others from it; the error
// then names one. It is [ErrAhead] where AUDIT is what lacks effects, and a
// [*GapError] where nothing has them.
func (s *Service) Heal(ctx context.Context, tape audit.Tape) (Healed, error) {
	h := &healing{service: s, tape: tape, behind: reached{}, after: math.MaxUint64}
	if err := h.look(ctx); err != nil {
		return h.found, err
	}
	h.catchUp(ctx)
	if err := ctx.Err(); err != nil {
		return h.found, err
	}
	return h.found, h.first
}

// look compares where each scope stands in the store, in AUDIT and in the audit
// log. When a heal is tried again the services run, and what AUDIT gets meanwhile
// must not look like what it lost: the log is read first, and AUDIT once more
// where the store is above what it was said to hold.
func (h *healing) look(ctx context.Context) error {
	logged, err := h.service.logged(ctx)
	if err != nil {
		return err
	}
	held := map[scope.Scope]bool{}
	heads := &together{service: h.service, each: func(head audit.Head, state memory.State) {
		h.compare(ctx, head, state)
		if logged[head.Scope] <= max(head.Sequence, state.AuditSeq) {
			delete(logged, head.Scope)
		}
	}}
	err = h.tape.Heads(ctx, func(head audit.Head) error {
		held[head.Scope] = true
		return heads.add(ctx, head)
	})
	if err == nil {
		err = heads.rest(ctx)
	}
	if err != nil {
		return err
	}
	begin, err := h.tape.Begin(ctx)
	if err != nil {
		return err
	}
	dropped := &together{service: h.service, each: func(head audit.Head, state memory.State) {
		h.compare(ctx, head, state)
		if state.AuditSeq < head.Sequence {
			h.dropped = append(h.dropped, head.Scope)
		}
	}}
	for fact, sequence := range logged {
		if sequence >= begin {
			if !held[fact] {
				h.found.Scopes++
			}
			h.fail(&h.found.Ahead, fmt.Errorf("%w: scope %s is at sequence %d in the audit log", ErrAhead, fact, sequence))
		} else if err := dropped.add(ctx, audit.Head{Scope: fact, Sequence: sequence}); err != nil {
			return err
		}
		held[fact] = true
	}
	if err := dropped.rest(ctx); err != nil {
		return err
	}
	return h.lookStored(ctx, held, begin)
}

// lookStored finds the scopes that only the store has effects of. Below begin
// AUDIT dropped them; from there on it lost them, and the audit log too.
func (h *healing) lookStored(ctx context.Context, known map[scope.Scope]bool, begin uint64) error {
	if h.service.deps.Stored == nil {
		return nil
	}
	projects, err := h.service.deps.Stored.Projects(ctx)
	if err != nil {
		return fmt.Errorf("read projects: %w", err)
	}
	unknown := &together{service: h.service, each: func(head audit.Head, state memory.State) {
		if state.AuditSeq > 0 && state.AuditSeq >= begin {
			h.found.Scopes++
			h.judge(ctx, head, state.AuditSeq)
		}
	}}
	for _, project := range projects {
		var failed error
		err := h.service.deps.Stored.Scopes(ctx, scope.Selector{Project: project}, func(fact scope.Scope) bool {
			if !known[fact] {
				failed = unknown.add(ctx, audit.Head{Scope: fact})
			}
			return failed == nil
		})
		if err = cmp.Or(failed, err); err != nil {
			return fmt.Errorf("read scopes: %w", err)
		}
	}
	return unknown.rest(ctx)
}

// compare finds what the store, where the scope stands at state, lacks up to head.
func (h *healing) compare(ctx context.Context, head audit.Head, state memory.State) {
	h.found.Scopes++
	switch {
	case state.AuditSeq < head.Sequence:
		h.behind[head.Scope] = state.Revision
		h.after = min(h.after, state.AuditSeq)
	case state.AuditSeq > head.Sequence:
		h.judge(ctx, head, state.AuditSeq)
	}
}

// judge tells a scope of which AUDIT lost effects from one that was committed to
// since its head was read.
func (h *healing) judge(ctx context.Context, head audit.Head, at uint64) {
	newest, err := h.service.newest(ctx, head)
	switch {
	case err != nil:
		h.fail(&h.found.Failed, fmt.Errorf("heal scope %s: %w", head.Scope, err))
	case at > newest:
		h.fail(&h.found.Ahead, fmt.Errorf("%w: scope %s is at sequence %d there, %d here", ErrAhead, head.Scope, newest, at))
	}
}

// newest is where the newest effect of a scope stands in AUDIT by now, which is
// where head has it unless more was committed.
func (s *Service) newest(ctx context.Context, head audit.Head) (uint64, error) {
	at := head.Sequence
	for e, err := range s.deps.Journal.ReadScope(ctx, head.Scope, at) {
		if err != nil {
			return 0, unread(err)
		}
		at = e.Sequence
	}
	return at, nil
}

func (h *healing) fail(count *int, err error) {
	*count++
	if h.first == nil {
		h.first = err
	}
}

// catchUp rolls forward what look found.
func (h *healing) catchUp(ctx context.Context) {
	errs := map[scope.Scope]error{}
	for _, fact := range h.dropped {
		_, errs[fact] = h.service.fill(ctx, h.behind, fact, 0)
	}
	switch rest := len(h.behind) - len(h.dropped); {
	case rest >= manyBehind:
		h.rollTogether(ctx, errs)
	case rest > 0:
		for fact := range h.behind {
			if _, done := errs[fact]; !done {
				errs[fact] = h.service.RollForward(ctx, fact)
				failpoint.Reach(failpoint.Start, failpoint.Healed)
			}
		}
	}
	for fact := range h.behind {
		err := errs[fact]
		if err == nil {
			err = h.service.deps.Applier.Advance(ctx, fact)
		}
		if err != nil {
			h.fail(&h.found.Failed, fmt.Errorf("heal scope %s: %w", fact, err))
			continue
		}
		h.found.Behind++
	}
}

// rollTogether reads AUDIT once for all scopes that are behind.
func (h *healing) rollTogether(ctx context.Context, errs map[scope.Scope]error) {
	for e, err := range h.tape.All(ctx, h.after) {
		if err != nil {
			for fact := range h.behind {
				errs[fact] = errors.Join(errs[fact], err)
			}
			return
		}
		fact := e.Data.Scope
		if _, behind := h.behind[fact]; !behind || errs[fact] != nil {
			continue
		}
		_, errs[fact] = h.service.reach(ctx, h.behind, e)
		failpoint.Reach(failpoint.Start, failpoint.Healed)
	}
}

// stuck is the error of a scope whose AUDIT refused an append and yet holds
// nothing newer than the row.
func stuck(fact scope.Scope, sequence uint64) error {
	return fmt.Errorf("%w: scope %s: nothing stands at or behind sequence %d", ErrAhead, fact, sequence)
}
