package redis

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// watchList are the rules for which each scope's row says whether it is pending.
// The list only grows, so its length numbers it; a row that was settled under a
// shorter one is found by that number and settled again.
type watchList struct{ rules atomic.Pointer[[]string] }

func (w *watchList) all() []string {
	if p := w.rules.Load(); p != nil {
		return *p
	}
	return nil
}

func (w *watchList) set(rules []string) {
	if len(rules) >= len(w.all()) {
		w.rules.Store(&rules)
	}
}

// args are what scripts settle a state with.
func (w *watchList) args() []any {
	rules := w.all()
	args := []any{len(rules), 2 * len(rules)}
	for _, rule := range rules {
		args = append(args, rule, scope.Encode(rule))
	}
	return args
}

func (s *Store) loadWatched(ctx context.Context, t *tenure) error {
	reply, err := s.call(ctx, "LRANGE", t.shared(keyWatched), 0, -1)
	if err == nil {
		t.watched.set(texts(reply))
	}
	return err
}

// watchRule adds the rule to the row of every scope, from whichever process the row
// is. It reads only rows that lack the rule.
func (s *Store) watchRule(ctx context.Context, rule string) error {
	t := s.tenure()
	if err := s.loadWatched(ctx, t); err != nil {
		return err
	}
	if !slices.Contains(t.watched.all(), rule) {
		reply, err := s.run(ctx, watchScript, []string{t.shared(keyWatched)}, rule)
		if err != nil {
			return fmt.Errorf("watch rule: %w", err)
		}
		t.watched.set(texts(reply))
	}
	for {
		q := of(kindState).below("watch", int64(len(t.watched.all())))
		a, err := s.search(ctx, s.searchArgs(q, pageSize, returning("p", "u", "a", "x")...))
		if err != nil || len(a.rows) == 0 {
			return err
		}
		for _, row := range a.rows {
			if err := s.settle(ctx, t, row); err != nil {
				return err
			}
		}
	}
}

// settle has a state settled under the list as it is now.
func (s *Store) settle(ctx context.Context, t *tenure, row found) error {
	fact, err := owner(row)
	if err != nil {
		return err
	}
	_, err = s.guarded(ctx, t, commitScript, []string{t.place(fact).state()}, append(t.watched.args(), 0, 0, 0, 0, 0)...)
	return err
}

// Pending implements [store.Schedule].
func (s *Store) Pending(ctx context.Context, rule string, yield func(store.Pending) bool) error {
	if err := s.watchRule(ctx, rule); err != nil {
		return err
	}
	after := ""
	for {
		rows, err := s.statePage(ctx, of(kindState).tag("pend", scope.Encode(rule)), after)
		if err != nil || len(rows) == 0 {
			return err
		}
		facts := make([]scope.Scope, len(rows))
		for i, row := range rows {
			if facts[i], err = owner(row); err != nil {
				return err
			}
		}
		list, err := s.pendingOf(ctx, rule, facts)
		if err != nil {
			return err
		}
		for _, p := range list {
			if p.LastOrdinal > p.Watermarks[rule] && !yield(p) {
				return nil
			}
		}
		if len(rows) < pageSize {
			return nil
		}
		after = rows[len(rows)-1].get("okey")
	}
}

// pendingOf reads what a rule's cadence asks of scopes, in one round trip. It asks for
// the newest end of each: an older version that writes beside keeps no bound in the
// state.
func (s *Store) pendingOf(ctx context.Context, rule string, facts []scope.Scope) ([]store.Pending, error) {
	commands := make([][]any, 0, 2*len(facts))
	for _, fact := range facts {
		p := s.place(fact)
		commands = append(commands, []any{"HGETALL", p.state()}, []any{"ZRANGE", p.row(kindEnds), 0, 0, "REV"})
	}
	replies, err := s.pipe(ctx, commands)
	if err != nil {
		return nil, err
	}
	list := make([]store.Pending, len(facts))
	for i, fact := range facts {
		list[i] = parseStanding(fact, hashOf(replies[2*i])).Pending(rule)
		list[i].Ended = false
		for _, member := range texts(replies[2*i+1]) {
			var end events.SessionEnd
			if err := decode("session end", []byte(member), &end); err != nil {
				return nil, err
			}
			list[i].Ended = end.LastOrdinal > list[i].Watermarks[rule]
		}
	}
	return list, nil
}

// pageSize is how many rows an iteration reads before it yields them.
const pageSize = 256

// statePage reads states by (project, key), from behind a place in that order.
func (s *Store) statePage(ctx context.Context, q *query, after string) ([]found, error) {
	return s.page(ctx, q, behind("okey", after), []any{"@okey", "ASC"}, pageSize, "@p", "@u", "@a", "@x", "@okey")
}

// behind is a filter on a field of our own encoding, which holds no quote.
func behind(field, after string) string {
	if after == "" {
		return ""
	}
	return fmt.Sprintf("@%s>'%s'", field, after)
}

func texts(reply any) []string {
	list, _ := reply.([]any)
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = text(v)
	}
	return out
}
