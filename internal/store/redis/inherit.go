package redis

import (
	"context"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// Inherit copies the rows that no stream holds from the store that this one
// replaces: how often facts were read, answers to POSTs, cached replies, ticks in
// progress and when cron last fired. None of it is part of the export. The
// statistics of a fact with another revision are not copied.
func (s *Store) Inherit(ctx context.Context, live store.Store) error {
	from, ok := live.(*Store)
	if !ok {
		return fmt.Errorf("redis: inherit from %T", live)
	}
	projects, err := from.Projects(ctx)
	if err != nil {
		return fmt.Errorf("inherit: %w", err)
	}
	for _, project := range projects {
		err := from.eachState(ctx, scope.Selector{Project: project}, func(fact scope.Scope, f fields) error {
			if err := s.inheritClaims(ctx, fact, f); err != nil {
				return err
			}
			return s.inheritAccesses(ctx, from, fact)
		})
		if err != nil {
			return fmt.Errorf("inherit: %w", err)
		}
	}
	if err := s.inheritValues(ctx, from); err != nil {
		return fmt.Errorf("inherit: %w", err)
	}
	return nil
}

func (s *Store) inheritClaims(ctx context.Context, fact scope.Scope, from fields) error {
	claims := fields{}
	for name, claim := range from {
		if strings.HasPrefix(name, claimField) && claim != "" {
			claims[name] = claim
		}
	}
	if len(claims) == 0 {
		return nil
	}
	return s.write(ctx, fact, nil, func(f fields, _ []any, b *batch) error {
		if len(f) == 0 {
			return nil
		}
		for name, claim := range claims {
			b.set(f, name, claim)
		}
		return nil
	})
}

// accessFields are what accesses change of a fact's row.
var accessFields = []any{"use", "prune"}

func (s *Store) inheritAccesses(ctx context.Context, from *Store, fact scope.Scope) error {
	q := of(kindFact).in(from.place(fact))
	a, err := from.search(ctx, from.searchArgs(q, allRows, returning(append([]any{"rev"}, accessFields...)...)...))
	if err != nil {
		return err
	}
	old, mine := from.place(fact).base, s.place(fact).base
	var calls []scriptCall
	for _, row := range a.rows {
		args := []any{row.get("rev")}
		for _, name := range accessFields {
			args = append(args, name, row.get(text(name)))
		}
		calls = append(calls, scriptCall{[]string{mine + strings.TrimPrefix(string(row.key), old)}, args})
	}
	if len(calls) == 0 {
		return nil
	}
	_, err = s.runAll(ctx, inheritScript, calls)
	return err
}

// inheritValues copies what is kept by itself: requests, cached replies, fires.
func (s *Store) inheritValues(ctx context.Context, from *Store) error {
	old, mine := from.layout().root(), s.layout().root()
	return from.eachKey(ctx, from.layout(), func(ctx context.Context, node goredis.Cmdable, keys []string) error {
		for _, key := range keys {
			rest := strings.TrimPrefix(key, old)
			if !strings.HasPrefix(rest, ":"+keyRequest+":") && !strings.HasPrefix(rest, ":"+keyFire+":") && !strings.Contains(rest, "}:"+kindCached+":") {
				continue
			}
			value, err := node.Get(ctx, key).Result()
			if err == goredis.Nil { //nolint:errorlint // the driver returns it bare
				continue // it has expired since
			}
			if err != nil {
				return explain(err)
			}
			expires, err := node.PExpireTime(ctx, key).Result()
			if err != nil {
				return explain(err)
			}
			set := []any{"SET", mine + rest, value}
			if expires > 0 {
				set = append(set, "PXAT", expires.Milliseconds())
			}
			if _, err := s.call(ctx, set...); err != nil {
				return err
			}
		}
		return nil
	})
}
