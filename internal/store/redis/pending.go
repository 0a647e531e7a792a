package redis

import (
	"context"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// keyRules is a hash of the rules that were ever asked for: a rule is "1" once all
// scopes from before it are in the wait queue.
const keyRules = "rules"

// Pending implements [store.Schedule]. A scope stays in the wait queue while it has
// episodes above the watermark of any rule that was ever asked for.
func (s *Store) Pending(ctx context.Context, rule string, yield func(store.Pending) bool) error {
	if err := s.watchRule(ctx, rule); err != nil {
		return err
	}
	read := func(entries []string) ([]string, []store.Standing, error) { return s.standings(ctx, entries) }
	return eachListed(ctx, s, startingWith(waitQueuePending), read, func(at store.Standing) bool {
		return at.LastOrdinal <= at.Watermarks[rule] || yield(at.Pending(rule))
	})
}

// standings reads where the scopes of entries stand, and the rules: another process may
// have begun to ask for one.
func (s *Store) standings(ctx context.Context, entries []string) (right []string, list []store.Standing, err error) {
	t, known := s.tenure(), owners{}
	commands := [][]any{{"HGETALL", t.shared(keyRules)}}
	facts := make([]scope.Scope, len(entries))
	for i, e := range entries {
		if facts[i], err = known.of(e[len(waitQueuePending):]); err != nil {
			return nil, nil, err
		}
		commands = append(commands, []any{"HGETALL", t.place(facts[i]).state()})
	}
	replies, err := s.pipe(ctx, commands)
	if err != nil {
		return nil, nil, err
	}
	rules := hashOf(replies[0])
	right, list = make([]string, len(entries)), make([]store.Standing, len(entries))
	for i, fact := range facts {
		list[i] = s.parseStanding(fact, hashOf(replies[1+i]))
		for rule := range rules {
			if list[i].LastOrdinal > list[i].Watermarks[rule] {
				right[i] = entries[i]
			}
		}
	}
	return right, list, nil
}

// watchRule puts all scopes in the wait queue for a rule that was never asked for. The rule
// is known before, so that no process takes a scope off that is pending for it alone.
func (s *Store) watchRule(ctx context.Context, rule string) error {
	t := s.tenure()
	reply, err := s.call(ctx, "HGET", t.shared(keyRules), rule)
	if err != nil || text(reply) == "1" {
		return err
	}
	if _, err := s.call(ctx, "HSET", t.shared(keyRules), rule, "0"); err != nil {
		return err
	}
	if err := s.statePages(ctx, of(kindState), func(page []scope.Scope) (bool, error) {
		entries := make([]string, len(page))
		for i, fact := range page {
			entries[i] = t.place(fact).pending()
		}
		return true, s.list(ctx, t, entries...)
	}); err != nil {
		return err
	}
	_, err = s.call(ctx, "HSET", t.shared(keyRules), rule, "1")
	return err
}
