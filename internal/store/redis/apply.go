package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Apply implements [store.Applier]: one script over keys of the scope's slot.
func (s *Store) Apply(ctx context.Context, effect events.EffectCommitted, auditSeq uint64) error {
	if err := effect.Validate(); err != nil {
		return err
	}
	rows, err := prepareRows(effect)
	if err != nil {
		return err
	}
	var queued []queuedText
	err = s.write(ctx, effect.Scope, rows.asks, func(f fields, replies []any, b *batch) error {
		queued = nil
		switch revision := f.uint("rev"); {
		case effect.Incarnation < s.incarnation(effect.Scope, f):
			return store.ErrIncarnation
		case effect.Revision <= revision:
			b.listHolds(effect)
			return nil
		case effect.Revision > revision+1:
			return store.ErrBehind
		}
		known := rows.known(replies)
		s.putFacts(b, f, rows.facts, known)
		rows.put(b)
		s.putEnds(b, f, effect, known)
		s.putOutcomes(b, effect, rows.outcomes)
		putLedger(b, f, effect)
		putRevision(b, f, effect)
		b.set(f, "aseq", strconv.FormatUint(max(f.uint("aseq"), auditSeq), 10))
		b.set(f, "inc", strconv.FormatUint(effect.Incarnation, 10))
		b.listHolds(effect)
		queued = b.queued
		b.enqueue(entriesIn(queued)...)
		return nil
	})
	if err == nil && len(queued) > 0 {
		s.tenure().fresh.note(queued)
	}
	return err
}

// putRevision raises the revision, and keeps what is known of holds up to it.
func putRevision(b *batch, f fields, effect events.EffectCommitted) {
	revision, held := strconv.FormatUint(effect.Revision, 10), "1:"
	if neverHeld(f) && len(effect.Holds) == 0 {
		held = "0:"
	}
	b.set(f, "rev", revision)
	b.set(f, fieldHeld, held+revision)
}

// Advance implements [store.Applier].
func (s *Store) Advance(ctx context.Context, fact scope.Scope) error {
	return s.raise(ctx, fact, func(f fields) (highest uint64) {
		for _, mark := range s.parseState(fact, f).Watermarks {
			highest = max(highest, mark)
		}
		return highest
	})
}

// CountFrom implements [store.EpisodeWriter].
func (s *Store) CountFrom(ctx context.Context, fact scope.Scope, last uint64) error {
	return s.raise(ctx, fact, func(fields) uint64 { return last })
}

// raise sets the last ordinal of a scope to one that follows from its state, unless it is
// higher.
func (s *Store) raise(ctx context.Context, fact scope.Scope, to func(f fields) uint64) error {
	return s.write(ctx, fact, nil, func(f fields, _ []any, b *batch) error {
		if last := to(f); last > f.uint("last") {
			b.guard(b.place.state(), "last", f["last"])
			b.set(f, "last", strconv.FormatUint(last, 10))
			b.enqueue(b.place.pending())
		}
		return nil
	})
}

// body is a row of the projection in its stored form.
type body struct {
	kind   string
	member string // its key within the scope
	text   string
	fields []any // beside the body; nil for a row that is no hash
	// entries are those of the lookup, besides that of its kind.
	entries []string
}

// rows are an effect's, with all that can be worked out before its turn.
type rows struct {
	facts    []newFact
	versions []body
	others   []body // entities, holds, edges: each replaces what was there
	released []string
	outcomes []string
	ends     []events.SessionEnd
}

func encode(what string, v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("redis: encode %s: %w", what, err)
	}
	return string(raw), nil
}

// decode reads what encode wrote. Whatever else is there is damage.
func decode(what string, body []byte, v any) error {
	if err := jsonv2.Unmarshal(body, v); err != nil {
		return fmt.Errorf("redis: %w: %s: %w", store.ErrDamaged, what, err)
	}
	return nil
}

func prepareRows(effect events.EffectCommitted) (r rows, err error) {
	r.ends = effect.SessionEnds
	text := func(what string, v any) string {
		text, failed := encode(what, v)
		err = cmp.Or(err, failed)
		return text
	}
	for _, fact := range effect.Facts {
		f, failed := prepareFact(fact)
		r.facts, err = append(r.facts, f), cmp.Or(err, failed)
	}
	for _, v := range effect.Versions {
		f, failed := prepareFact(v)
		err = cmp.Or(err, failed)
		m := member(kindVersion, v.ID, strconv.FormatUint(v.Revision, 10))
		r.versions = append(r.versions, body{kindVersion, m, f.body, f.identity(), f.entries(m)})
	}
	for _, e := range effect.Entities {
		m := member(kindEntity, e.ID)
		var names, entries []string
		for _, name := range append([]string{e.CanonicalName}, e.Aliases...) {
			key := token(memory.EntityKey(name))
			names, entries = append(names, key), append(entries, entry(byName, key, m))
		}
		own := []any{"id", token(e.ID), "oid", ordered(e.ID), "name", strings.Join(names, ","), "prune", describeAt(e)}
		r.others = append(r.others, body{kindEntity, m, text("entity", e), own, entries})
	}
	for _, h := range effect.Holds {
		own := []any{"id", token(h.ID), "oid", ordered(h.ID), "fact", token(h.FactID), "held", micros(h.HeldAt)}
		r.others = append(r.others, body{kindHold, member(kindHold, h.ID), text("hold", h), own, nil})
	}
	for _, e := range effect.Edges {
		m := member(kindEdge, e.ID)
		r.others = append(r.others, body{kindEdge, m, text("edge", e), nil, entriesOfEdge(e, m)})
	}
	for _, o := range effect.Outcomes {
		r.outcomes = append(r.outcomes, text("outcome", o))
	}
	for _, id := range effect.Released {
		r.released = append(r.released, member(kindHold, id))
	}
	return r, err
}

// put writes all but the facts.
func (r rows) put(b *batch) {
	for _, v := range r.versions {
		b.row(b.place.base+v.member, v.kind, append(v.fields, "b", v.text)...)
		b.list(append(v.entries, entry(byKind, "", v.member))...)
	}
	for _, o := range r.others {
		key := b.place.base + o.member
		if o.fields == nil {
			b.do("SET", key, o.text)
		} else {
			b.row(key, o.kind, append(o.fields, "b", o.text)...)
		}
		b.list(append(o.entries, entry(byKind, "", o.member))...)
	}
	for _, m := range r.released {
		b.do("DEL", b.place.base+m)
		b.unlist(entry(byKind, "", m))
	}
}

// putEnds records the ends that the effect knows of, which a store that is built
// anew may not; a session that went on since stays open.
func (s *Store) putEnds(b *batch, f fields, effect events.EffectCommitted, known known) {
	for i, end := range effect.SessionEnds {
		if known.ends[i] == 0 {
			b.do("ZADD", b.place.row(kindEnds), end.LastOrdinal, formatEnd(end))
		}
		b.noteEnd(f, end)
		place := known.sessions[i]
		if place.uint("last") != end.LastOrdinal || place["ended"] != "" || place["last"] == "" {
			continue
		}
		b.endSession(f, place, end)
	}
}

// noteEnd raises the bound on the ends of a state. One that was written before
// there was a bound has episodes and none, and gets none.
func (b *batch) noteEnd(f fields, end events.SessionEnd) {
	if f[fieldLastEnd] == "" && f["ed"] != "" {
		return
	}
	b.set(f, fieldLastEnd, strconv.FormatUint(max(f.uint(fieldLastEnd), end.LastOrdinal), 10))
}

// endSession closes a session's row, unless an episode comes between.
func (b *batch) endSession(f, place fields, end events.SessionEnd) {
	key := b.place.row(kindSession, end.Session)
	if n := f.uint(fieldOpenSessions); n > 0 && place["idle"] == "1" && !b.closed[end.Session] {
		if b.closed == nil {
			b.closed = map[string]bool{}
			b.guard(b.place.state(), fieldOpenSessions, f[fieldOpenSessions])
		}
		b.closed[end.Session] = true
		b.set(f, fieldOpenSessions, strconv.FormatUint(n-1, 10))
	}
	b.guard(key, "last", place["last"])
	b.do("HSET", key, "ended", micros(end.At), "cause", string(end.Cause), "idle", "0")
	b.unlist(entry(openSession, "", member(kindSession, end.Session)))
}

// putOutcomes keeps outcomes beside the scope; the server drops them in time.
func (s *Store) putOutcomes(b *batch, effect events.EffectCommitted, texts []string) {
	expires := effect.CommittedAt.Add(outcomeLife)
	if !expires.After(s.cfg.Now()) {
		return
	}
	for i, o := range effect.Outcomes {
		key := b.place.row(kindOutcome, strconv.FormatUint(effect.Revision, 10), strconv.Itoa(i))
		b.row(key, kindOutcome, "corr", token(o.CorrelationID), "rev", effect.Revision, "ord", i, "b", texts[i])
		b.do("PEXPIREAT", key, expires.UnixMilli())
	}
}
