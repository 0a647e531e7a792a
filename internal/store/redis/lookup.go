package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// A scope's lookup is a sorted set in its slot, ordered by member alone. An entry
// is a value by which a row is found, a space, and the key of the row within the
// scope. The scripts that write the rows keep it.
const (
	byOrdinal   = "o" // an episode, by ordinal
	bySession   = "n" // an episode, by session and ordinal
	byID        = "d" // an episode, by id
	byHash      = "h" // a fact or a version, by the hash of its text
	byPredicate = "p" // a fact or a version, by a tag of its field pred
	byName      = "e" // an entity, by name or alias
	byNode      = "g" // an edge, by the entity at either end
	byKind      = "m" // a row of the projection, by kind and id
	openSession = "s" // a live session that has not ended
)

func (p place) lookup() string { return p.row(kindLookup) }

// ordinalText is an ordinal in a form that sorts; the script that gives ordinals
// formats them alike.
func ordinalText(n uint64) string { return fmt.Sprintf("%016d", clampOrdinal(n)) }

// entry is how a row is listed.
func entry(by, value, member string) string { return by + value + " " + member }

// entries are a part of a lookup, in the form of ZRANGE.
type entries struct{ min, max string }

// startingWith are the entries that begin with a prefix. No entry holds a byte of
// 0xff.
func startingWith(prefix string) entries { return entries{"[" + prefix, "(" + prefix + "\xff"} }

// foundBy are the entries of one value.
func foundBy(by, value string) entries { return startingWith(by + value + " ") }

// everyHit is more rows than any part of a lookup lists.
const everyHit = -1

// mostListed bounds the entries that are read to save a read of each part.
const mostListed = 512

// rowsBy reads fields of the rows that parts of a scope's lookup name, the parts with
// their first entry and without their last bound where there are several: each row once, in the order of the lookup. Rows
// without the first field are left out. Of an effect that is applied meanwhile it may
// see some rows only; a decision on them is stale by then.
func (s *Store) rowsBy(ctx context.Context, p place, names []string, parts ...entries) ([]listedRow, error) {
	members, err := s.membersBy(ctx, p, parts)
	if err != nil {
		return nil, err
	}
	commands := make([][]any, len(members))
	for i, m := range members {
		if strings.HasPrefix(m, kindEdge+":") {
			commands[i] = []any{"GET", p.base + m}
			continue
		}
		commands[i] = with(names, "HMGET", p.base+m)
	}
	replies, err := s.pipe(ctx, commands)
	if err != nil {
		return nil, err
	}
	rows := make([]listedRow, 0, len(members))
	for i, reply := range replies {
		row := listedRow{members[i], fields{names[0]: text(reply)}} // of an edge
		if _, hash := reply.([]any); hash {
			row.fields = pick(names, reply)
		}
		if row.fields[names[0]] != "" {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// membersBy are the keys of the rows that parts of a lookup name, each once. Several parts
// are cut out of one range where that is short.
func (s *Store) membersBy(ctx context.Context, p place, parts []entries) ([]string, error) {
	all := entries{parts[0].min, parts[0].max}
	limit := everyHit
	if len(parts) > 1 {
		limit = mostListed
	}
	for _, part := range parts[1:] {
		all.min, all.max = min(all.min, part.min), max(all.max, part.max)
	}
	reply, err := s.call(ctx, "ZRANGE", p.lookup(), all.min, all.max, "BYLEX", "LIMIT", 0, limit)
	if err != nil {
		return nil, err
	}
	listed := texts(reply)
	switch {
	case len(parts) == 1:
	case len(listed) < mostListed:
		listed = slices.DeleteFunc(listed, func(e string) bool {
			return !slices.ContainsFunc(parts, func(part entries) bool { return e >= part.min[1:] && e < part.max[1:] })
		})
	default:
		commands := make([][]any, len(parts))
		for i, part := range parts {
			commands[i] = []any{"ZRANGE", p.lookup(), part.min, part.max, "BYLEX"}
		}
		replies, err := s.pipe(ctx, commands)
		if err != nil {
			return nil, err
		}
		listed = nil
		for _, reply := range replies {
			listed = append(listed, texts(reply)...)
		}
	}
	var members []string
	seen := map[string]bool{}
	for _, e := range listed {
		if m := e[strings.LastIndexByte(e, ' ')+1:]; !seen[m] {
			seen[m] = true
			members = append(members, m)
		}
	}
	return members, nil
}

// listedRow is a row by its key within the scope.
type listedRow struct {
	member string
	fields
}

// kind is that of the row.
func (r listedRow) kind() string {
	kind, _, _ := strings.Cut(r.member, ":")
	return kind
}

// entriesOf are those of any version of a fact, from the fields hash and pred of its
// row.
func entriesOf(hash, pred, member string) []string {
	list := []string{entry(byHash, hash, member)}
	for key := range strings.SplitSeq(pred, ",") {
		list = append(list, entry(byPredicate, key, member))
	}
	return list
}

// entriesOfEdge are those of an edge.
func entriesOfEdge(e events.Edge, member string) []string {
	return []string{entry(byNode, token(e.SourceID), member), entry(byNode, token(e.TargetID), member)}
}

// list adds entries to the scope's lookup; unlist takes them out. The last word on
// an entry counts.
func (b *batch) list(entries ...string)   { b.listed(true, entries) }
func (b *batch) unlist(entries ...string) { b.listed(false, entries) }

func (b *batch) listed(in bool, entries []string) {
	for _, e := range entries {
		if _, known := b.entries[e]; !known {
			b.order = append(b.order, e)
		}
		b.entries[e] = in
	}
}

// maxEntries bounds the arguments of one command, which pass over Lua's stack.
const maxEntries = 2000

// putEntries adds the commands that bring the lookup up to date.
func (b *batch) putEntries() {
	var in, out []any
	for _, e := range b.order {
		if b.entries[e] {
			in = append(in, 0, e)
		} else {
			out = append(out, e)
		}
	}
	for part := range slices.Chunk(in, 2*maxEntries) {
		b.do("ZADD", b.place.lookup(), part...)
	}
	for part := range slices.Chunk(out, maxEntries) {
		b.do("ZREM", b.place.lookup(), part...)
	}
	b.order = nil
}

// lookups are the keys of scopes' rows as ranges by tokens.
func lookups(by string, values []string) []entries {
	parts := make([]entries, len(values))
	for i, v := range values {
		parts[i] = foundBy(by, v)
	}
	return parts
}

// bodiesBy decodes the bodies of rows that a scope's lookup names.
func bodiesBy[T any](ctx context.Context, s *Store, fact scope.Scope, parts ...entries) ([]T, error) {
	rows, err := s.rowsBy(ctx, s.place(fact), []string{"b"}, parts...)
	if err != nil {
		return nil, err
	}
	return parseAll(rows, decodeBody[T])
}

// rowsAt reads fields of the rows with some keys.
func (s *Store) rowsAt(ctx context.Context, keys, names []string) ([]fields, error) {
	commands := make([][]any, len(keys))
	for i, key := range keys {
		commands[i] = with(names, "HMGET", key)
	}
	replies, err := s.pipe(ctx, commands)
	rows := make([]fields, len(replies))
	for i, reply := range replies {
		rows[i] = pick(names, reply)
	}
	return rows, err
}
