package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var selectFact = `SELECT s.project, s.user, s.agent, s.session, f.strength, f.access_count, f.last_accessed, f.row, ` + bodyOf("f") + `
  FROM facts f CROSS JOIN scopes s ON s.id = f.scope_id`

func scanFact(row scanner) (f store.Fact, id int64, err error) {
	var accessed int64
	var stored factRow
	err = row.Scan(append([]any{
		&f.Scope.Project, &f.Scope.User, &f.Scope.Agent, &f.Scope.Session, &f.Strength, &f.AccessCount, &accessed, &id,
	}, stored.columns()...)...)
	if err != nil {
		return f, 0, err
	}
	f.LastAccessed = fromMicros(accessed)
	f.Fact, err = stored.fact()
	return f, id, err
}

var selectVersion = `SELECT s.project, s.user, s.agent, s.session, ` + bodyOf("v") + `
  FROM versions v CROSS JOIN scopes s ON s.id = v.scope_id`

// scanVersion reads a version that is history: it has no vector, and whatever
// accesses it had count for its successor.
func scanVersion(row scanner) (f store.Fact, err error) {
	var stored factRow
	err = row.Scan(append([]any{&f.Scope.Project, &f.Scope.User, &f.Scope.Agent, &f.Scope.Session}, stored.columns()...)...)
	if err != nil {
		return f, err
	}
	if f.Fact, err = stored.fact(); err != nil {
		return f, err
	}
	return store.History(f), nil
}

func (s *Store) facts(ctx context.Context, where string, args ...any) ([]store.Fact, error) {
	var list []store.Fact
	err := s.reads.each(ctx, selectFact+where, args, func(row scanner) error {
		f, _, err := scanFact(row)
		list = append(list, f)
		return err
	})
	return list, err
}

func (s *Store) versions(ctx context.Context, where string, args ...any) ([]store.Fact, error) {
	var list []store.Fact
	err := s.reads.each(ctx, selectVersion+where, args, func(row scanner) error {
		f, err := scanVersion(row)
		list = append(list, f)
		return err
	})
	return list, err
}

// Fact implements [store.FactReader].
func (s *Store) Fact(ctx context.Context, sel scope.Selector, id string) (store.Fact, error) {
	if err := sel.Validate(); err != nil {
		return store.Fact{}, err
	}
	where, args := matchScopes(sel, true)
	return store.Only(s.facts(ctx, ` WHERE f.id = ? AND `+where+` ORDER BY s.key LIMIT 1`, append([]any{id}, args...)...))
}

// Version implements [store.FactReader].
func (s *Store) Version(ctx context.Context, sel scope.Selector, at memory.Address) (store.Fact, error) {
	return store.VersionOf(ctx, s, sel, at, func() (store.Fact, error) {
		where, args := matchScopes(sel, true)
		return store.Only(s.versions(ctx, ` WHERE v.id = ? AND v.revision = ? AND `+where+` ORDER BY s.key LIMIT 1`,
			append([]any{at.ID, clampOrdinal(at.Revision)}, args...)...))
	})
}

// Versions implements [store.FactReader].
func (s *Store) Versions(ctx context.Context, sel scope.Selector, id string) ([]store.Fact, error) {
	current, err := s.Fact(ctx, sel, id)
	if err != nil {
		return nil, err
	}
	scopeID, err := s.scopeID(ctx, current.Scope)
	if err != nil {
		return nil, err
	}
	list, err := s.versions(ctx, ` WHERE v.id = ? AND v.scope_id = ? AND v.revision < ? ORDER BY v.revision`,
		id, scopeID, clampOrdinal(current.Revision))
	if err != nil {
		return nil, err
	}
	return append(list, current), nil
}

// Facts implements [store.FactReader].
func (s *Store) Facts(ctx context.Context, sel scope.Selector, q store.FactQuery) ([]store.Fact, error) {
	if err := store.CheckLimit(q.Limit); err != nil {
		return nil, err
	}
	places, err := s.factPlaces(ctx, sel)
	if err != nil {
		return nil, err
	}
	var list []store.Fact
	for _, p := range places {
		page, err := s.factPage(ctx, p.scopeID, q)
		if err != nil {
			return nil, err
		}
		if list = append(list, page...); len(list) >= 4*q.Limit {
			list = store.NewestFacts(list, q.Limit)
		}
	}
	return store.NewestFacts(list, q.Limit), nil
}

// factPage lists facts of one scope. A newest version that had not begun at the
// instant of q stands for the version that held then, so that the index gives the
// order and ends the read; versions are read only for those.
func (s *Store) factPage(ctx context.Context, scopeID int64, q store.FactQuery) ([]store.Fact, error) {
	narrow, args := narrowFacts(factFilter{session: q.Session, kinds: q.Kinds, validAt: q.ValidAt, archived: q.IncludeArchived, matching: q.Filter})
	if !q.ValidAt.IsZero() {
		const later = `f.valid_from > ? AND f.revision > 1`
		at := micros(q.ValidAt)
		if q.Earlier {
			narrow, args = ` AND `+later, []any{at}
		} else {
			narrow, args = ` AND (TRUE`+narrow+` OR `+later+`)`, append(args, at)
		}
	}
	return store.ReadPages(q.Limit,
		func(last *store.Fact) ([]store.Fact, error) {
			before, id := int64(math.MaxInt64), ""
			if at := q.Behind(last); at != nil {
				before, id = micros(at.CreatedAt), at.ID
			}
			return s.facts(ctx, ` WHERE f.scope_id = ? AND (f.created_at, f.id) < (?, ?)`+narrow+` ORDER BY f.created_at DESC, f.id DESC LIMIT ?`,
				append(append([]any{scopeID, before, id}, args...), q.Limit)...)
		},
		func(page []store.Fact) ([]store.Fact, error) {
			held, err := s.asOf(ctx, scopeID, page, q)
			return q.Filter.Facts(held), err
		})
}

// asOf puts the versions that held at the instant of q in the place of newest ones.
func (s *Store) asOf(ctx context.Context, scopeID int64, page []store.Fact, q store.FactQuery) ([]store.Fact, error) {
	var ids []string
	for _, f := range page {
		if !store.Begun(f, q.ValidAt) {
			ids = append(ids, f.ID)
		}
	}
	if len(ids) == 0 {
		return page, nil
	}
	earlier, err := s.versions(ctx, ` WHERE v.id IN (SELECT value FROM json_each(?)) AND v.scope_id = ?`, jsonList(ids), scopeID)
	if err != nil {
		return nil, err
	}
	return q.Held(page, earlier), nil
}

// FactsByID implements [store.FactReader].
func (s *Store) FactsByID(ctx context.Context, fact scope.Scope, ids []string) ([]store.Fact, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return s.facts(ctx, ` WHERE f.scope_id = ? AND f.id IN (SELECT value FROM json_each(?))`, scopeID, jsonList(ids))
}

// FactsByHash implements [store.FactReader].
func (s *Store) FactsByHash(ctx context.Context, fact scope.Scope, hashes []string) ([]store.Fact, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil || len(hashes) == 0 {
		return nil, err
	}
	const where = `%.scope_id = ? AND %.hash IN (SELECT value FROM json_each(?))`
	return s.allVersions(ctx, of("f", where), of("v", where), scopeID, jsonList(hashes))
}

// FactsByPredicate implements [store.FactReader].
func (s *Store) FactsByPredicate(ctx context.Context, fact scope.Scope, subject, predicate string) ([]store.Fact, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil {
		return nil, err
	}
	const where = `%.scope_id = ? AND %.subject = ? AND %.predicate = ?`
	return s.allVersions(ctx, of("f", where), of("v", where), scopeID, subject, predicate)
}

// FactsByTriple implements [store.FactReader].
func (s *Store) FactsByTriple(ctx context.Context, fact scope.Scope, ts []events.Triple) ([]store.Fact, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil {
		return nil, err
	}
	var asked [][3]string
	for _, t := range ts {
		asked = append(asked, [3]string{t.Subject, t.Predicate, lex.Object(t.Object)})
	}
	list, err := json.Marshal(asked)
	if err != nil || len(ts) == 0 {
		return nil, err
	}
	// Each triple is looked up twice: with its object, and without one. The
	// outer SELECT is there because SQLite looks up no row values in a compound: it
	// would compare every version of every scope.
	const row = ` FROM json_each(?2) AS q CROSS JOIN # AS x ON x.scope_id = ?1
	  AND x.subject = q.value ->> 0 AND x.predicate = q.value ->> 1 AND x.object `
	const rows = `(SELECT * FROM (SELECT $` + row + `= q.value ->> 2 UNION SELECT $` + row + `IS NULL))`
	facts := strings.NewReplacer("#", "facts", "$", "x.row").Replace(`f.row IN ` + rows)
	versions := strings.NewReplacer("#", "versions", "$", "x.id, x.scope_id, x.revision").Replace(`(v.id, v.scope_id, v.revision) IN ` + rows)
	return s.allVersions(ctx, facts, versions, scopeID, string(list))
}

// of is a condition in which % stands for the table.
func of(table, where string) string { return strings.ReplaceAll(where, "%", table) }

// allVersions returns newest and earlier versions by (id, revision), with a
// condition for either.
func (s *Store) allVersions(ctx context.Context, newest, before string, args ...any) ([]store.Fact, error) {
	list, err := s.facts(ctx, ` WHERE `+newest, args...)
	if err != nil {
		return nil, err
	}
	earlier, err := s.versions(ctx, ` WHERE `+before, args...)
	// Between the two reads the newest may have become history.
	return store.SortVersions(append(list, earlier...)), err
}

// Entities implements [store.FactReader].
func (s *Store) Entities(ctx context.Context, fact scope.Scope, names []string) ([]events.Entity, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil {
		return nil, err
	}
	if names == nil {
		return entities(ctx, s.reads, `WHERE scope_id = ? ORDER BY id`, scopeID)
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = memory.EntityKey(name)
	}
	return entities(ctx, s.reads, `WHERE scope_id = ?1 AND id IN
	  (SELECT id FROM entity_names WHERE scope_id = ?1 AND name IN (SELECT value FROM json_each(?2))) ORDER BY id`,
		scopeID, jsonList(keys))
}

// EntitiesByID implements [store.FactReader].
func (s *Store) EntitiesByID(ctx context.Context, fact scope.Scope, ids []string) ([]events.Entity, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil {
		return nil, err
	}
	return entities(ctx, s.reads, `WHERE scope_id = ?1 AND id IN (SELECT value FROM json_each(?2))`,
		scopeID, jsonList(ids))
}

// Edges implements [store.FactReader].
func (s *Store) Edges(ctx context.Context, fact scope.Scope, nodes []string) ([]events.Edge, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil {
		return nil, err
	}
	var list []events.Edge
	if nodes == nil {
		list, err = edges(ctx, s.reads, `WHERE scope_id = ? ORDER BY id`, scopeID)
	} else {
		list, err = edges(ctx, s.reads, `WHERE scope_id = ?1 AND id IN (
		  SELECT id FROM edges WHERE scope_id = ?1 AND source_id IN (SELECT value FROM json_each(?2)) UNION
		  SELECT id FROM edges WHERE scope_id = ?1 AND target_id IN (SELECT value FROM json_each(?2))) ORDER BY id`,
			scopeID, jsonList(nodes))
	}
	return slices.DeleteFunc(list, func(e events.Edge) bool { return e.Type == events.EdgeSupersedes }), err
}

// edges reads the edges that a condition selects. The body of an edge that an earlier
// version wrote has the columns as well.
func edges(ctx context.Context, q querier, where string, args ...any) ([]events.Edge, error) {
	var list []events.Edge
	err := q.each(ctx, `SELECT id, source_id, target_id, body FROM edges `+where, args, func(row scanner) error {
		var e events.Edge
		var id, source, target string
		var body rawText
		if err := row.Scan(&id, &source, &target, &body); err != nil {
			return err
		}
		if err := jsonv2.Unmarshal(body, &e); err != nil {
			return fmt.Errorf("decode edge: %w", err)
		}
		e.ID, e.SourceID, e.TargetID = id, source, target
		list = append(list, e)
		return nil
	})
	return list, err
}

// entities reads the entities that a condition selects. The body of one that an earlier
// version wrote has the id as well.
func entities(ctx context.Context, q querier, where string, args ...any) ([]events.Entity, error) {
	var list []events.Entity
	err := q.each(ctx, `SELECT id, body FROM entities `+where, args, func(row scanner) error {
		var id string
		var body rawText
		if err := row.Scan(&id, &body); err != nil {
			return err
		}
		var e events.Entity
		if err := jsonv2.Unmarshal(body, &e); err != nil {
			return fmt.Errorf("decode entity: %w", err)
		}
		e.ID = id
		list = append(list, e)
		return nil
	})
	return list, err
}

// bodies decodes the JSON column of each row.
func bodies[T any](ctx context.Context, q querier, query string, args ...any) ([]T, error) {
	var list []T
	err := q.each(ctx, query, args, func(row scanner) error {
		var body rawText
		if err := row.Scan(&body); err != nil {
			return err
		}
		var v T
		if err := jsonv2.Unmarshal(body, &v); err != nil {
			return fmt.Errorf("decode row: %w", err)
		}
		list = append(list, v)
		return nil
	})
	return list, err
}
