package sqlite

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"math"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// place is where rows within a selector are: a whole fact scope, or with a
// placeID one session of it.
type place struct {
	scopeID, placeID int64
	fact             scope.Scope
	episodes, facts  corpus
}

const placeColumns = `s.id, s.project, s.user, s.agent, s.session, s.episode_docs, s.episode_terms, s.fact_docs, s.fact_terms`

// byKey is the order of places. The plus keeps SQLite from walking all scopes of
// the project for it, in place of looking up the few that match.
const byKey = `ORDER BY +s.key`

// factPlaces returns the fact scopes that sel matches, by (project, key).
func (s *Store) factPlaces(ctx context.Context, sel scope.Selector) ([]place, error) {
	if err := sel.Validate(); err != nil {
		return nil, err
	}
	return s.keptPlaces(store.Facts, sel, func() ([]place, error) {
		if fact, ok := sel.Fact(); ok {
			return s.exactPlace(ctx, fact)
		}
		where, args := matchScopes(sel, true)
		return s.places(ctx, `SELECT `+placeColumns+`, 0 FROM scopes s WHERE `+where+` `+byKey, args)
	})
}

// exactPlace is the place of one fact scope, whose id is mostly known: deciding
// on a candidate begins with it.
func (s *Store) exactPlace(ctx context.Context, fact scope.Scope) ([]place, error) {
	id, err := s.scopeID(ctx, fact)
	if err != nil || id == 0 {
		return nil, err
	}
	p := place{scopeID: id, fact: fact}
	_, err = s.reads.one(ctx, `SELECT episode_docs, episode_terms, fact_docs, fact_terms FROM scopes WHERE id = ?`, []any{id},
		&p.episodes.docs, &p.episodes.terms, &p.facts.docs, &p.facts.terms)
	return []place{p}, err
}

// episodePlaces returns where the episodes that sel matches are: fact scopes if
// it takes any session, else the sessions of that name.
func (s *Store) episodePlaces(ctx context.Context, sel scope.Selector) ([]place, error) {
	if err := sel.Validate(); err != nil {
		return nil, err
	}
	return s.keptPlaces(store.Episodes, sel, func() ([]place, error) { return s.readEpisodePlaces(ctx, sel) })
}

func (s *Store) readEpisodePlaces(ctx context.Context, sel scope.Selector) ([]place, error) {
	where, args := matchScopes(sel, false)
	if sel.Session == nil {
		return s.places(ctx, `SELECT `+placeColumns+`, 0 FROM scopes s WHERE `+where+` `+byKey, args)
	}
	if sel.User == nil && sel.Agent == nil {
		return s.places(ctx, `SELECT `+placeColumns+`, p.id FROM sessions p CROSS JOIN scopes s ON s.id = p.scope_id
		  WHERE p.project = ? AND p.session = ? `+byKey, []any{sel.Project, *sel.Session})
	}
	return s.places(ctx, `SELECT `+placeColumns+`, p.id FROM scopes s CROSS JOIN sessions p ON p.scope_id = s.id
	  WHERE `+where+` AND p.session = ? `+byKey, append(args, *sel.Session))
}

// placesKey is a selector, as a text, and the search target in it.
type placesKey struct {
	target store.Target
	sel    string
	mark   int64 // of its user
}

// foundPlaces is what a selector matched while its user's mark was mark.
type foundPlaces struct {
	list []place
	mark uint64
}

const placesMemory = 1 << 20 // bytes

func (k placesKey) changes() int64 { return k.mark }

// userMark is what changes with any scope of a user, and now and then with
// another's.
func userMark(project, user string) int64 {
	return int64(maphash.Comparable(placesSeed, [2]string{project, user}))
}

var placesSeed = maphash.MakeSeed()

// keptPlaces answers from memory while no scope of the user has changed (see
// rowCache.flush). What a selector matches that takes any user changes too often.
func (s *Store) keptPlaces(target store.Target, sel scope.Selector, read func() ([]place, error)) ([]place, error) {
	if sel.User == nil {
		return read()
	}
	key := placesKey{target, sel.String(), userMark(sel.Project, *sel.User)}
	at := stripe(key.changes())
	var kept foundPlaces
	known := false
	marks := s.placesOf.get([]placesKey{key}, func(_ int, v foundPlaces) { kept, known = v, true })
	if known && kept.mark == marks[at] {
		return kept.list, nil
	}
	list, err := read()
	if err == nil {
		s.placesOf.put(key, foundPlaces{list, marks[at]}, int64(len(list))*256, &marks)
	}
	return list, err
}

// matchScopes is the condition on scopes s; every level is compared for
// equality or not at all.
func matchScopes(sel scope.Selector, withSession bool) (where string, args []any) {
	where, args = "s.project = ?", []any{sel.Project}
	levels := []struct {
		column string
		id     *string
	}{{"s.user", sel.User}, {"s.agent", sel.Agent}}
	if withSession {
		levels = append(levels, struct {
			column string
			id     *string
		}{"s.session", sel.Session})
	}
	for _, l := range levels {
		if l.id != nil {
			where += " AND " + l.column + " = ?"
			args = append(args, *l.id)
		}
	}
	return where, args
}

func (s *Store) places(ctx context.Context, query string, args []any) ([]place, error) {
	var list []place
	err := s.reads.each(ctx, query, args, func(row scanner) error {
		var p place
		err := row.Scan(&p.scopeID, &p.fact.Project, &p.fact.User, &p.fact.Agent, &p.fact.Session,
			&p.episodes.docs, &p.episodes.terms, &p.facts.docs, &p.facts.terms, &p.placeID)
		list = append(list, p)
		return err
	})
	return list, err
}

// maxKnownScopes bounds the ids that are remembered.
const maxKnownScopes = 50_000

// scopeID returns the id of a fact scope, or 0, which no row has, if the scope is
// unknown. Ids are cached, since rows of scopes are never deleted: code that deletes
// one must remove it from the cache, or the next owner of the id is read.
func (s *Store) scopeID(ctx context.Context, fact scope.Scope) (int64, error) {
	if err := fact.Validate(); err != nil {
		return 0, err
	}
	if id, ok := s.reads.scopes.Get(fact); ok {
		return id, nil
	}
	var id int64
	found, err := s.reads.one(ctx, `SELECT id FROM scopes WHERE project = ? AND key = ?`, []any{fact.Project, fact.Key()}, &id)
	if found {
		s.reads.scopes.Put(fact, id, maxKnownScopes)
	}
	return id, err
}

// jsonList passes a list as one parameter, for json_each.
func jsonList[T any](list []T) string {
	raw, err := json.Marshal(list)
	if err != nil || list == nil { // strings and integers always marshal
		return "[]"
	}
	return string(raw)
}

// clampOrdinal fits an ordinal into a column.
func clampOrdinal(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
