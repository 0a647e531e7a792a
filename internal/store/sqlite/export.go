package sqlite

import (
	"context"
	"fmt"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Projects implements [store.Exporter].
func (s *Store) Projects(ctx context.Context) ([]string, error) {
	var list []string
	err := s.reads.each(ctx, `SELECT DISTINCT project FROM scopes WHERE last_ordinal > 0 OR revision > 0 ORDER BY project`, nil,
		func(row scanner) error {
			var project string
			err := row.Scan(&project)
			list = append(list, project)
			return err
		})
	return list, err
}

// Scopes implements [store.Exporter].
func (s *Store) Scopes(ctx context.Context, sel scope.Selector, yield func(scope.Scope) bool) error {
	if err := sel.Validate(); err != nil {
		return err
	}
	where, args := matchScopes(sel, true)
	key := ""
	return eachPage(func() (page []scope.Scope, err error) {
		err = s.reads.each(ctx, `SELECT s.user, s.agent, s.session, s.key FROM scopes s WHERE `+where+`
		  AND s.key > ? AND (s.last_ordinal > 0 OR s.revision > 0) ORDER BY s.key LIMIT ?`,
			append(append([]any{}, args...), key, pageSize), func(row scanner) error {
				fact := scope.Scope{Project: sel.Project}
				err := row.Scan(&fact.User, &fact.Agent, &fact.Session, &key)
				page = append(page, fact)
				return err
			})
		return page, err
	}, yield)
}

// Snapshot implements [store.Exporter].
func (s *Store) Snapshot(ctx context.Context, fact scope.Scope) (store.Snapshot, error) {
	snap := store.Snapshot{Scope: fact, Watermarks: map[string]uint64{}}
	if err := fact.Validate(); err != nil {
		return snap, err
	}
	err := s.reads.within(ctx, func(v *view) error {
		var id int64
		err := v.each(ctx, `SELECT id, revision FROM scopes WHERE project = ? AND key = ?`, []any{fact.Project, fact.Key()},
			func(row scanner) error { return row.Scan(&id, &snap.Revision) })
		if err != nil || id == 0 {
			return err
		}
		if snap.Facts, err = factBodies(ctx, v, `SELECT `+bodyOf("facts")+` FROM facts WHERE scope_id = ? ORDER BY id`, id); err != nil {
			return err
		}
		if snap.Versions, err = factBodies(ctx, v, `SELECT `+bodyOf("versions")+` FROM versions WHERE scope_id = ? ORDER BY id, revision`, id); err != nil {
			return err
		}
		if snap.Entities, err = entities(ctx, v, `WHERE scope_id = ? ORDER BY id`, id); err != nil {
			return err
		}
		if snap.Edges, err = edges(ctx, v, `WHERE scope_id = ? ORDER BY id`, id); err != nil {
			return err
		}
		if snap.Holds, err = bodies[events.Hold](ctx, v, `SELECT body FROM holds WHERE scope_id = ? ORDER BY id`, id); err != nil {
			return err
		}
		snap.Watermarks, err = readWatermarks(ctx, v, id)
		return err
	})
	return snap, err
}

// Accounts implements [store.Ledger].
func (s *Store) Accounts(ctx context.Context, sel scope.Selector, rules []string) ([]store.Account, error) {
	if err := sel.Validate(); err != nil {
		return nil, err
	}
	where, args := matchScopes(sel, true)
	// Ranges end at the newest episode: a store that is rebuilt may know a
	// watermark before the episodes below it.
	query := `WITH wanted AS (
	    SELECT s.id, r.value AS rule FROM scopes s, json_each(?) r WHERE ` + where + ` AND s.last_ordinal > 0
	    UNION SELECT s.id, t.rule FROM scopes s JOIN rule_states t ON t.scope_id = s.id WHERE ` + where + ` AND t.watermark IS NOT NULL
	  )
	  SELECT s.user, s.agent, s.session, w.rule, s.last_ordinal, min(coalesce(t.watermark, 0), s.last_ordinal),
	    (SELECT coalesce(sum(max(0, min(k.upto, s.last_ordinal) - k.above)), 0) FROM skips k WHERE k.scope_id = s.id AND k.rule = w.rule),
	    coalesce(t.candidates, 0), coalesce(t.decided, 0), coalesce(t.held, 0), coalesce(t.dropped, 0)
	  FROM wanted w JOIN scopes s ON s.id = w.id LEFT JOIN rule_states t ON t.scope_id = w.id AND t.rule = w.rule
	  ORDER BY s.project, s.key, w.rule`
	all := append([]any{jsonList(rules)}, args...)
	all = append(all, args...)
	var list []store.Account
	err := s.reads.each(ctx, query, all, func(row scanner) error {
		a := store.Account{Scope: scope.Scope{Project: sel.Project}}
		var covered uint64
		err := row.Scan(&a.Scope.User, &a.Scope.Agent, &a.Scope.Session, &a.Rule, &a.Accepted, &covered, &a.Skipped,
			&a.Candidates, &a.Decided, &a.Held, &a.Dropped)
		if err != nil {
			return err
		}
		if a.Skipped > covered {
			return fmt.Errorf("ledger of %s, rule %s: %d skipped of %d", a.Scope, a.Rule, a.Skipped, covered)
		}
		a.Pending = a.Accepted - covered
		a.Consolidated = covered - a.Skipped
		list = append(list, a)
		return nil
	})
	return list, err
}

// Ping implements [store.Health].
func (s *Store) Ping(ctx context.Context) error {
	if s.reading {
		return store.ErrLocked
	}
	if err := s.damage.seen(); err != nil {
		return err
	}
	if err := s.file.Check(); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	j := &job{ctx: ctx, done: make(chan struct{}), do: func(w *writer) error {
		return w.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('pinged', ?)`, s.cfg.Now().UTC().String())
	}}
	if err := s.enqueue(j); err != nil {
		return err
	}
	select {
	case <-j.done:
		if j.err != nil {
			return j.err
		}
	case <-ctx.Done(): // unlike for other writes, it does not matter whether it still happens
		return fmt.Errorf("sqlite: no write gets through: %w", ctx.Err())
	}
	var n int
	_, err := s.reads.one(ctx, `SELECT count(*) FROM meta WHERE name = 'pinged'`, nil, &n)
	return err
}

// Stats implements [store.Health].
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	var st store.Stats
	sp := s.spaces.Load()
	_, err := s.reads.one(ctx, `SELECT
	  (SELECT user_version FROM pragma_user_version),
	  s.used, s.episodes, s.facts,
	  (SELECT count(*) FROM versions), (SELECT count(*) FROM entities),
	  q.queued - q.refused, q.refused,
	  (SELECT count(*) FROM holds),
	  (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)
	  FROM (SELECT count(*) FILTER (WHERE last_ordinal > 0 OR revision > 0) AS used, coalesce(sum(last_ordinal), 0) AS episodes,
	    coalesce(sum(fact_docs), 0) AS facts FROM scopes) s,
	  (SELECT count(*) AS queued, count(refused) AS refused FROM `+sp.Served.queue()+`) q`, nil,
		&st.Schema, &st.Scopes, &st.Episodes, &st.Facts, &st.Versions, &st.Entities, &st.VectorsPending, &st.VectorsRefused, &st.Holds, &st.Bytes)
	if err != nil || sp.Next == nil {
		return st, err
	}
	_, err = s.reads.one(ctx, `SELECT count(*) FROM `+sp.Next.queue()+` WHERE refused IS NULL`, nil, &st.VectorsBuilding)
	st.VectorsBuilding += uint64(sp.Next.Facts.left() + sp.Next.Episodes.left())
	return st, err
}
