package decider

import (
	"context"
	"slices"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const (
	pageSize = 1000
	// closesPerDelta bounds the ids of one delete.
	closesPerDelta = 500
)

// forget closes every fact of the scope that holds. With a session it closes
// the facts that only the session contributed to, and takes the session away
// from the others.
func (o *order) forget(ctx context.Context) error {
	session := o.in.Data.Session
	if o.in.Data.Scope.Session != "" {
		session = "" // the scope is the session's
	}
	var doomed []string
	var shared []events.Fact
	err := o.each(ctx, session, func(f events.Fact) {
		if session == "" || !slices.ContainsFunc(f.SessionIDs, func(id string) bool { return id != session }) {
			doomed = append(doomed, f.ID)
		} else {
			shared = append(shared, f)
		}
	})
	if err != nil {
		return err
	}
	for ids := range slices.Chunk(doomed, closesPerDelta) {
		if err := o.delete(ids...); err != nil {
			return err
		}
	}
	err = o.dropHeld(func(h events.Hold) bool {
		others := slices.ContainsFunc(h.Candidate.SessionIDs, func(id string) bool { return id != session })
		return session == "" || len(h.Candidate.SessionIDs) > 0 && !others
	})
	if err != nil {
		return err
	}
	for _, f := range shared {
		f.SessionIDs = slices.DeleteFunc(slices.Clone(f.SessionIDs), func(id string) bool { return id == session })
		if err := o.update(events.ReasonRequested, f, f.ID); err != nil {
			return err
		}
	}
	return nil
}

// each calls yield for the facts of the scope that hold, archived ones
// included, newest first.
func (o *order) each(ctx context.Context, session string, yield func(events.Fact)) error {
	q := store.FactQuery{IncludeArchived: true, Limit: pageSize}
	if session != "" {
		q.Session = &session
	}
	for {
		page, err := o.s.deps.Facts.Facts(ctx, scope.Exactly(o.in.Data.Scope), q)
		if err != nil {
			return err
		}
		for _, f := range page {
			if !o.closed(f.Fact) {
				yield(f.Fact)
			}
		}
		if len(page) < pageSize {
			return nil
		}
		last := page[len(page)-1]
		q.Cursor = &store.FactCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}
