package redis

import (
	"context"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/poll"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// migratePoll is how often a process asks whether another has migrated.
const migratePoll = 100 * time.Millisecond

// migrate gives a generation of schema 1 its lookups, one of schema 2 its wait queue and
// one of schema 3 the lookups of its edges, made from its rows. One process does it while the others wait; it may be stopped at
// any point and begun again, since what it adds is the same each time and the schema is
// written last. The wait queue gets its scopes and texts as any new one does; see
// [Store.watchRule] and [Store.requeue].
func (s *Store) migrate(ctx context.Context) error {
	return poll.Until(ctx, migratePoll, func() (done bool, err error) {
		m, known, err := s.readMeta(ctx, s.layout())
		if err != nil || !known || m.Schema >= schemaVersion {
			return true, err
		}
		release, err := s.lease(ctx, "migrate")
		if err != nil || release == nil {
			return false, err
		}
		defer release()
		s.cfg.Logger.Info("migrate the memory store", "generation", s.layout().generation, "from", m.Schema, "to", schemaVersion)
		if err := s.migrateFrom(ctx, m); err != nil {
			return false, fmt.Errorf("migrate to schema %d: %w", schemaVersion, err)
		}
		return true, nil
	})
}

func (s *Store) migrateFrom(ctx context.Context, m meta) error {
	if err := s.eachKey(ctx, s.layout(), s.addLookups); err != nil {
		return err
	}
	t := s.tenure()
	old := [][]any{{"DEL", t.shared("watched")}}
	for id := range m.last() {
		old = append(old, []any{"DEL", t.shared(space{ID: id + 1}.field("vectors"))})
	}
	if _, err := s.pipe(ctx, old); err != nil {
		return err
	}
	return s.changeMeta(ctx, t, func(m *meta) bool {
		m.Schema = schemaVersion
		return true
	})
}

// lookedUp are the fields of the rows of each kind from which their entries are made.
var lookedUp = map[string][]string{
	kindEpisode: {"b", "ord", "id"},
	kindFact:    {"hash", "pred"},
	kindVersion: {"hash", "pred"},
	kindEntity:  {"name"},
	kindSession: {"idle", "seen", "okey", "x"},
	kindHold:    {"b", "okey"},
}

// addLookups adds the entries of rows, in two round trips.
func (s *Store) addLookups(ctx context.Context, node goredis.Cmdable, keys []string) error {
	type row struct {
		key, base, member, kind string
		fields                  *goredis.SliceCmd
		members                 *goredis.StringSliceCmd
		body                    *goredis.StringCmd // of an edge
	}
	var rows []row
	reads := node.Pipeline()
	for _, key := range keys {
		at := strings.Index(key, "}:")
		if at < 0 {
			continue // of no scope
		}
		r := row{key: key, base: key[:at+2], member: key[at+2:]}
		r.kind, _, _ = strings.Cut(r.member, ":")
		switch fields := lookedUp[r.kind]; {
		case fields != nil:
			r.fields = reads.HMGet(ctx, key, fields...)
		case r.kind == kindMembers:
			r.members = reads.SMembers(ctx, key)
		case r.kind == kindEdge:
			r.body = reads.Get(ctx, key)
		default:
			continue
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil
	}
	if _, err := reads.Exec(ctx); err != nil {
		return err
	}
	writes, known := node.Pipeline(), owners{}
	var waitQueue []string
	for _, r := range rows {
		var list []string
		switch {
		case r.members != nil:
			for _, m := range r.members.Val() {
				list = append(list, entry(byKind, "", m))
			}
		case r.body != nil:
			var e events.Edge
			if err := decode("edge", []byte(r.body.Val()), &e); err != nil {
				return err
			}
			list = entriesOfEdge(e, r.member)
		default:
			f := pick(lookedUp[r.kind], r.fields.Val())
			e, err := s.waitQueueFrom(r.kind, f, known)
			if err != nil {
				return err
			}
			if list, err = entriesFrom(r.kind, r.member, f); err != nil {
				return err
			}
			waitQueue = append(waitQueue, e...)
		}
		for len(list) > 0 {
			n := min(len(list), maxEntries)
			part := make([]goredis.Z, n)
			for i, e := range list[:n] {
				part[i].Member = e
			}
			writes.ZAdd(ctx, r.base+kindLookup, part...)
			list = list[n:]
		}
		if r.members != nil {
			writes.Unlink(ctx, r.key)
		}
	}
	if _, err := writes.Exec(ctx); err != nil {
		return err
	}
	return s.list(ctx, s.tenure(), waitQueue...)
}

// waitQueueFrom are the entries of a row, of schema 2 too.
func (s *Store) waitQueueFrom(kind string, f fields, known owners) ([]string, error) {
	if kind == kindState && f["okey"] != "" {
		return []string{waitQueuePending + f["okey"]}, nil
	}
	if kind != kindHold && (kind != kindSession || f["idle"] != "1") {
		return nil, nil
	}
	fact, err := known.of(f["okey"])
	if err != nil {
		return nil, err
	}
	if kind == kindSession {
		session, err := scope.Decode(f["x"])
		return []string{s.place(fact).idle(session, toInt(f["seen"]))}, err
	}
	var h events.Hold
	if err := decodeBody(&h, f); err != nil || h.Due == nil {
		return nil, err
	}
	return []string{s.place(fact).due(h.ID, store.CeilMicros(*h.Due))}, nil
}

// entriesFrom are those of a row of schema 1.
func entriesFrom(kind, member string, f fields) ([]string, error) {
	switch {
	case kind == kindEpisode && f["b"] != "":
		var b said
		if err := decode("episode", f.view("b"), &b); err != nil {
			return nil, err
		}
		at := ordinalText(f.uint("ord")) + " " + member
		return []string{byOrdinal + at, bySession + token(b.Scope.Session) + " " + at, entry(byID, f["id"], member)}, nil
	case (kind == kindFact || kind == kindVersion) && f["hash"] != "":
		return entriesOf(f["hash"], f["pred"], member), nil
	case kind == kindEntity && f["name"] != "":
		var list []string
		for key := range strings.SplitSeq(f["name"], ",") {
			list = append(list, entry(byName, key, member))
		}
		return list, nil
	case kind == kindSession && f["idle"] == "1":
		return []string{entry(openSession, "", member)}, nil
	}
	return nil, nil
}
