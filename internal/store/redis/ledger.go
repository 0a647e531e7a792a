package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// tally is what a rule's effects have counted in a scope. Held falls below zero
// never, but a store that is rebuilt may settle before it counts.
type tally struct{ candidates, decided, held, dropped int64 }

func parseTally(text string) (t tally) {
	_, _ = fmt.Sscanf(text, "%d,%d,%d,%d", &t.candidates, &t.decided, &t.held, &t.dropped) // "" is zero
	return t
}

func (t tally) String() string {
	return fmt.Sprintf("%d,%d,%d,%d", t.candidates, t.decided, t.held, t.dropped)
}

// putLedger moves the watermark and settles what the effect counts.
func putLedger(b *batch, f fields, effect events.EffectCommitted) {
	t := parseTally(f[tallyField+effect.Rule])
	t.candidates += int64(effect.Tally.Candidates)
	t.decided += int64(effect.Tally.Decided)
	t.held += int64(effect.Tally.Held)
	t.dropped += int64(effect.Tally.Dropped)
	b.set(f, tallyField+effect.Rule, t.String())
	for _, settled := range effect.Tally.Settled {
		if f[tallyField+settled.Rule] == "" {
			continue
		}
		t := parseTally(f[tallyField+settled.Rule])
		t.held -= int64(settled.Decided + settled.Dropped)
		t.decided += int64(settled.Decided)
		t.dropped += int64(settled.Dropped)
		b.set(f, tallyField+settled.Rule, t.String())
	}
	putSkips(b, f, effect)
	if effect.Watermark == nil {
		return
	}
	mark := max(f.uint(markField+effect.Rule), *effect.Watermark)
	b.set(f, markField+effect.Rule, strconv.FormatUint(mark, 10))
}

// putSkips keeps the ranges that were buried: a buried one is added, one that a
// late batch made good is taken out, wherever it was cut.
func putSkips(b *batch, f fields, effect events.EffectCommitted) {
	if effect.Range == nil || effect.Range.Empty() || effect.Watermark == nil && effect.Skipped != "" {
		return
	}
	field := skipField + effect.Rule
	list := cut(parseSkips(f[field]), *effect.Range)
	if effect.Skipped != "" {
		list = append(list, *effect.Range)
	}
	if len(list) == 0 {
		if f[field] != "" {
			b.set(f, field, "[]")
		}
		return
	}
	slices.SortFunc(list, func(x, y events.Range) int { return cmp.Compare(x.From, y.From) })
	raw, _ := json.Marshal(list) // numbers marshal
	b.set(f, field, string(raw))
}

// cut takes r out of a list of ranges.
func cut(list []events.Range, r events.Range) (out []events.Range) {
	for _, s := range list {
		if s.To <= r.From || s.From >= r.To {
			out = append(out, s)
			continue
		}
		for _, rest := range []events.Range{{From: s.From, To: min(s.To, r.From)}, {From: max(s.From, r.To), To: s.To}} {
			if !rest.Empty() {
				out = append(out, rest)
			}
		}
	}
	return out
}

// Skipped implements [store.Applier].
func (s *Store) Skipped(ctx context.Context, fact scope.Scope, rule string) ([]events.Range, error) {
	if err := fact.Validate(); err != nil {
		return nil, err
	}
	reply, err := s.call(ctx, "HGET", s.place(fact).state(), skipField+rule)
	return parseSkips(text(reply)), err
}

// Accounts implements [store.Ledger].
func (s *Store) Accounts(ctx context.Context, sel scope.Selector, rules []string) ([]store.Account, error) {
	var list []store.Account
	err := s.eachState(ctx, sel, func(fact scope.Scope, f fields) error {
		var wanted []string
		if f.uint("last") > 0 {
			wanted = slices.Clone(rules)
		}
		for name := range f {
			if rule, ok := strings.CutPrefix(name, markField); ok {
				wanted = append(wanted, rule)
			}
		}
		slices.Sort(wanted)
		for _, rule := range slices.Compact(wanted) {
			a, err := account(fact, rule, f)
			if err != nil {
				return err
			}
			list = append(list, a)
		}
		return nil
	})
	return list, err
}

// account ends ranges at the newest episode: a store that is rebuilt may know
// a watermark before the episodes below it.
func account(fact scope.Scope, rule string, f fields) (store.Account, error) {
	t := parseTally(f[tallyField+rule])
	a := store.Account{
		Scope: fact, Rule: rule, Accepted: f.uint("last"), Candidates: uint64(t.candidates), Decided: uint64(t.decided),
		Held: uint64(t.held), Dropped: uint64(t.dropped),
	}
	covered := min(f.uint(markField+rule), a.Accepted)
	for _, r := range parseSkips(f[skipField+rule]) {
		if to := min(r.To, a.Accepted); to > r.From {
			a.Skipped += to - r.From
		}
	}
	if a.Skipped > covered {
		return a, fmt.Errorf("redis: ledger of %s, rule %s: %d skipped of %d", fact, rule, a.Skipped, covered)
	}
	a.Pending, a.Consolidated = a.Accepted-covered, covered-a.Skipped
	return a, nil
}
