package retrieval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"palimpsest/internal/retrieval/timex"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// timeLeg is the name of the channel of the time that a question names.
const timeLeg = "time"

// timeWeight is the weight of episodes in the time that a question names, relative
// to the text channel. At 2 the best of these episodes comes first, and a row of
// another time needs the other channels.
const timeWeight = 2

// inOrderLimit is how many hits an answer in order of time has unless its question
// names a limit.
const inOrderLimit = 50

// Page is a place in an answer in order of time.
type Page struct {
	// Now is that of the first page, so that "today" and "the last session" mean
	// the same on every page.
	Now time.Time
	// Session is the index of the session of Cursor, among those that the question
	// names.
	Session int
	// Cursor is the last episode before the page.
	Cursor store.EpisodeCursor
}

// named is where to look for the time that a question names.
type named struct {
	timex.Reading
	within        []scope.Selector // in order of time
	after, before time.Time        // exclusive; zero means unbounded
}

// inOrder reads the time that the question names. Where the question is about that
// alone it answers with all that was said then, in order, and returns true. Where
// nothing was, or more is asked, q knows the time. A timeline that fails is left out
// and named, except of a page, which has nothing else.
func (e *Engine) inOrder(ctx context.Context, q *Query) (out Results, done bool, err error) {
	if q.Page != nil {
		q.Now = q.Page.Now
	}
	if q.Now.IsZero() {
		return out, false, nil
	}
	reading := timex.Read(q.Text, q.Now)
	if !reading.Found() {
		return out, q.Page != nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.config.Deadline)
	defer cancel()
	out, err = e.read(ctx, q, reading)
	switch {
	case err == nil:
		return out, len(out.Hits) > 0 || q.Page != nil, nil
	case q.Page != nil:
		return Results{}, false, errors.Join(ErrUnavailable, err)
	}
	return Results{Degraded: []string{timeLeg}}, false, nil
}

// read finds the scopes and bounds to search. If the question asks for nothing but
// the time, it returns the episodes of that time.
func (e *Engine) read(ctx context.Context, q *Query, reading timex.Reading) (Results, error) {
	n := &named{Reading: reading, within: []scope.Selector{q.Scope}}
	n.bound(*q, reading.From, reading.To)
	if reading.Sessions.First > 0 {
		if err := e.findSessions(ctx, *q, n); err != nil {
			return Results{}, err
		}
	}
	if !reading.Only || !q.Episodes {
		q.named = n
		return Results{}, nil
	}
	out, err := e.told(ctx, *q, n)
	if err == nil && len(out.Hits) == 0 && reading.Slack > 0 {
		n.bound(*q, reading.From.Add(-reading.Slack), reading.To.Add(reading.Slack))
		out, err = e.told(ctx, *q, n)
	}
	return out, err
}

// bound narrows the query's own bounds to [from, to).
func (n *named) bound(q Query, from, to time.Time) {
	n.after, n.before = q.After, q.Before
	if !from.IsZero() && from.After(n.after) {
		n.after = from.Add(-time.Microsecond) // the store's unit, whose bounds are exclusive
	}
	if !to.IsZero() && (n.before.IsZero() || to.Before(n.before)) {
		n.before = to
	}
}

// findSessions narrows n to the sessions that the question names by their order.
func (e *Engine) findSessions(ctx context.Context, q Query, n *named) error {
	s := n.Sessions
	list, err := e.store.Sessions(ctx, q.Scope, store.SessionQuery{
		Skip: s.First - 1, Limit: min(s.Last-s.First+1, 1000), Newest: s.FromEnd, Before: q.Now.Add(time.Microsecond),
	})
	if err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	if s.FromEnd {
		slices.Reverse(list)
	}
	n.within = n.within[:0]
	for _, full := range list {
		n.within = append(n.within, scope.Selector{Project: full.Project, User: &full.User, Agent: &full.Agent, Session: &full.Session})
	}
	return nil
}

// told returns a page of the episodes of the time, oldest first. Each of them is a
// full match and scores 1.
func (e *Engine) told(ctx context.Context, q Query, n *named) (Results, error) {
	limit := min(cmp.Or(max(q.Limit, 0), inOrderLimit), 1000)
	out := Results{Complexity: ComplexityOf(q.Text)}
	first, cursor := 0, (*store.EpisodeCursor)(nil)
	if q.Page != nil {
		first, cursor = max(0, q.Page.Session), &q.Page.Cursor
	}
	for i := first; i < len(n.within); i++ {
		asked := store.RecentQuery{Limit: min(limit+1-len(out.Hits), 1000), Oldest: true, After: n.after, Before: n.before, Filter: q.Filter, Cursor: cursor}
		episodes, err := e.store.Recent(ctx, n.within[i], asked)
		if err != nil {
			return out, fmt.Errorf("episodes of a time: %w", err)
		}
		for k := range episodes {
			if len(out.Hits) == limit {
				return out, nil
			}
			out.Hits = append(out.Hits, inTime(store.Hit{Score: 1, Episode: &episodes[k]}, len(out.Hits)))
			out.Next = &Page{Now: q.Now, Session: i, Cursor: store.CursorOf(episodes[k])}
		}
		cursor = nil
	}
	if len(out.Hits) < 1000 {
		out.Next = nil
	}
	return out, nil
}

func inTime(h store.Hit, before int) Hit {
	return Hit{Hit: h, Score: 1, Channels: map[string]Place{timeLeg: {Rank: before + 1, Score: 1}}}
}

// named ranks what was said in the time that the question names: by the rest of its
// words, then whatever shares none, oldest first.
func (e *Engine) named(ctx context.Context, q Query) (found, error) {
	hits, err := e.namedHits(ctx, q)
	return found{hits: hits}, err
}

func (e *Engine) namedHits(ctx context.Context, q Query) ([]store.Hit, error) {
	var all []store.Hit
	then := q
	then.After, then.Before = q.named.after, q.named.before
	for _, then.Scope = range q.named.within {
		hits, err := each(then, func(sel scope.Selector, t store.SearchQuery) ([]store.Hit, error) {
			return e.store.SearchText(ctx, sel, q.named.Rest, t)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, hits...)
	}
	slices.SortStableFunc(all, func(a, b store.Hit) int { return cmp.Compare(b.Score, a.Score) })
	if !q.Episodes {
		return all, nil
	}
	known := map[string]bool{}
	for _, h := range all {
		known[keyOf(h)] = true
	}
	for _, sel := range q.named.within {
		said, err := e.store.Recent(ctx, sel, store.RecentQuery{Limit: depth, Oldest: true, After: then.After, Before: then.Before, Filter: q.Filter})
		if err != nil {
			return nil, err
		}
		for i := range said {
			if h := (store.Hit{Episode: &said[i]}); !known[keyOf(h)] {
				all = append(all, h)
			}
		}
	}
	return all, nil
}

// fits reports whether a turn is of the time that the question names.
func (n *named) fits(session string, at time.Time) bool {
	if n == nil || !n.Holds(at) {
		return false
	}
	return n.Sessions.First == 0 || slices.ContainsFunc(n.within, func(s scope.Selector) bool { return *s.Session == session })
}
