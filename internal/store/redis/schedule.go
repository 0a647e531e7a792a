package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Claim implements [store.Schedule]. The driver sends a command again whose answer
// got lost, and is refused by what the first one wrote: a claim that stands as it
// was sent is the caller's.
func (s *Store) Claim(ctx context.Context, fact scope.Scope, rule string, expect, next store.Claim) (stands store.Claim, won bool, err error) {
	next.At = fromMicros(micros(next.At))
	sent := expect == (store.Claim{}) && !s.isLost()
	if sent {
		if won, err = s.claimFirst(ctx, fact, rule, next); won || err != nil {
			return next, won, err
		}
	}
	err = s.write(ctx, fact, nil, func(f fields, _ []any, b *batch) error {
		stands = parseClaim(f[claimField+rule])
		won = sent && formatClaim(stands) == formatClaim(next)
		if won || formatClaim(stands) != formatClaim(expect) {
			return nil
		}
		sent, b.hint = true, true
		b.guard(b.place.state(), claimField+rule, f[claimField+rule]) // a first claim leaves ver alone
		b.set(f, claimField+rule, formatClaim(next))
		stands, won = next, true
		return nil
	})
	return stands, won, err
}

// claimFirst makes the first claim of a rule in a scope, by one command. It reports false
// where there was one before.
func (s *Store) claimFirst(ctx context.Context, fact scope.Scope, rule string, next store.Claim) (bool, error) {
	if err := fact.Validate(); err != nil {
		return false, err
	}
	p := s.place(fact)
	reply, err := s.call(ctx, "HSETNX", p.state(), claimField+rule, formatClaim(next))
	if err != nil {
		return false, fmt.Errorf("first claim: %w", err)
	}
	return reply == int64(1), nil
}

// LastFire implements [store.Schedule].
func (s *Store) LastFire(ctx context.Context, rule string) (time.Time, error) {
	reply, err := s.call(ctx, "GET", s.layout().shared(keyFire, rule))
	if err != nil || reply == nil {
		return time.Time{}, err
	}
	us, err := strconv.ParseInt(text(reply), 10, 64)
	return fromMicros(us), err
}

// SetLastFire implements [store.Schedule].
func (s *Store) SetLastFire(ctx context.Context, rule string, at time.Time) error {
	_, err := s.run(ctx, laterScript, []string{s.layout().shared(keyFire, rule)}, micros(at))
	return err
}

// EndSession implements [store.EpisodeWriter]. An end that names a last ordinal
// other than the session's newest is of the past: the session went on.
func (s *Store) EndSession(ctx context.Context, session scope.Scope, end events.SessionEnd) (memory.State, error) {
	if err := session.Validate(); err != nil {
		return memory.State{}, err
	}
	fact := session.Fact()
	var state memory.State
	asks := func(p place) [][]any { return [][]any{{"HGETALL", p.row(kindSession, session.Session)}} }
	err := s.write(ctx, fact, asks, func(f fields, replies []any, b *batch) error {
		p := b.place
		state = s.parseState(fact, f)
		if session.Session == "" || len(f) == 0 {
			return nil
		}
		place := hashOf(replies[0])
		last := place.uint("last")
		if last == 0 || end.LastOrdinal != 0 && end.LastOrdinal != last {
			return nil
		}
		now := end
		now.Session, now.LastOrdinal = session.Session, last
		reply, err := s.call(ctx, "ZCOUNT", p.row(kindEnds), last, last)
		if err != nil {
			return err
		}
		if reply == int64(0) {
			b.do("ZADD", p.row(kindEnds), last, formatEnd(now))
		}
		b.noteEnd(f, now)
		if place["ended"] == "" {
			b.endSession(f, place, now)
		}
		return nil
	})
	return state, err
}

// formatEnd is a session end as a member of the scope's sorted set.
func formatEnd(end events.SessionEnd) string {
	end.At = fromMicros(micros(end.At))
	raw, _ := json.Marshal(end) // strings, a number and an instant marshal
	return string(raw)
}

// EndsAbove implements [store.Schedule].
func (s *Store) EndsAbove(ctx context.Context, fact scope.Scope, from uint64) ([]events.SessionEnd, error) {
	if err := fact.Validate(); err != nil {
		return nil, err
	}
	reply, err := s.call(ctx, "ZRANGE", s.place(fact).row(kindEnds), "("+number(clampOrdinal(from)), "+inf", "BYSCORE")
	if err != nil {
		return nil, err
	}
	var ends []events.SessionEnd
	for _, member := range texts(reply) {
		var e events.SessionEnd
		if err := decode("session end", []byte(member), &e); err != nil {
			return nil, err
		}
		ends = append(ends, e)
	}
	return ends, nil
}

var sessionFields = []string{"okey", "x", "first", "seen", "last", "live", "ended", "cause"}

func parseSession(r record, known owners) (memory.Session, error) {
	full, err := known.session(r)
	m := memory.Session{
		Scope: full, FirstSeen: fromMicros(toInt(r.get("first"))), LastSeen: fromMicros(toInt(r.get("seen"))), LastOrdinal: toUint(r.get("last")),
		EndCause: events.EndCause(r.get("cause")), Live: r.get("live") == "1",
	}
	if r.get("ended") != "" {
		m.EndedAt = fromMicros(toInt(r.get("ended")))
	}
	return m, err
}

// OpenSessions implements [store.Schedule].
func (s *Store) OpenSessions(ctx context.Context, fact scope.Scope) ([]memory.Session, error) {
	if err := fact.Validate(); err != nil {
		return nil, err
	}
	p, open := s.place(fact), startingWith(entry(openSession, "", ""))
	reply, err := s.call(ctx, "ZRANGE", p.lookup(), open.min, open.max, "BYLEX")
	if err != nil {
		return nil, err
	}
	keys := texts(reply)
	for i, e := range keys {
		keys[i] = p.base + e[len(openSession)+1:]
	}
	rows, err := s.rowsAt(ctx, keys, sessionFields)
	if err != nil {
		return nil, err
	}
	list, known := make([]memory.Session, len(rows)), owners{}
	for i, row := range rows {
		if list[i], err = parseSession(row, known); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b memory.Session) int {
		return cmp.Or(a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.Scope.Session, b.Scope.Session))
	})
	return list, nil
}

// IdleSessions implements [store.Schedule].
func (s *Store) IdleSessions(ctx context.Context, at time.Time, yield func(memory.Session) bool) error {
	read := func(entries []string) ([]string, []memory.Session, error) { return s.listedSessions(ctx, entries) }
	return eachListed(ctx, s, upTo(waitQueueIdle, store.CeilMicros(at)), read, yield)
}

func (s *Store) listedSessions(ctx context.Context, entries []string) (right []string, list []memory.Session, err error) {
	known, places := owners{}, make([]place, len(entries))
	keys := make([]string, len(entries))
	for i, e := range entries {
		fact, session, err := known.parseListed(e)
		if err != nil {
			return nil, nil, err
		}
		places[i] = s.place(fact)
		keys[i] = places[i].row(kindSession, session)
	}
	rows, err := s.rowsAt(ctx, keys, append([]string{"idle"}, sessionFields...))
	if err != nil {
		return nil, nil, err
	}
	right, list = make([]string, len(entries)), make([]memory.Session, len(entries))
	for i, f := range rows {
		if f["idle"] != "1" {
			continue
		}
		if list[i], err = parseSession(f, known); err != nil {
			return nil, nil, err
		}
		right[i] = places[i].idle(list[i].Scope.Session, toInt(f["seen"]))
	}
	return right, list, nil
}
