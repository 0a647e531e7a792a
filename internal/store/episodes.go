package store

import (
	"context"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// EpisodeWriter is ingest's role.
type EpisodeWriter interface {
	// PutEpisode stores an episode and returns what is stored. In one atomic
	// step it must give it the next ordinal of its fact scope, index its text,
	// flag its vector as pending (not for incognito), and register its session.
	//
	// An id known in (project, scope, source) must change nothing: with the same
	// content, role and mode it returns the stored episode and Known; otherwise
	// Conflict. Ordinals have no gaps but those that CountFrom makes. It returns only after the write is as
	// durable as the store is configured to be. Backends may commit concurrent
	// calls together.
	PutEpisode(ctx context.Context, e memory.Episode) (Put, error)
	// PutEpisodes is PutEpisode for each of es, in the order given, in one
	// atomic step: where it returns an error it must have stored none of them. A
	// conflict is an answer, and keeps none of the others from being stored.
	PutEpisodes(ctx context.Context, es []memory.Episode) ([]Put, error)
	// EndSession records that the session was ended at its newest episode. An
	// end whose LastOrdinal is not 0 and not the session's newest came too late
	// and changes nothing. It is idempotent per (session, last ordinal); ending
	// an unknown session is no error and changes nothing. It returns the state
	// of the fact scope.
	EndSession(ctx context.Context, session scope.Scope, end events.SessionEnd) (memory.State, error)
	// CountFrom lets the next episode of a fact scope have an ordinal above last,
	// where what was said before it is lost. It must lower none.
	CountFrom(ctx context.Context, fact scope.Scope, last uint64) error
}

// Put is the answer to a stored episode.
type Put struct {
	Episode  memory.Episode
	Known    bool // it was stored before
	Conflict bool // its id is known with other content; Episode is the known one
	State    memory.State
}

// EpisodeReader reads what was said.
type EpisodeReader interface {
	// Episode returns one by (scope, source, id), or [ErrNotFound]; an empty
	// source matches any.
	Episode(ctx context.Context, s scope.Scope, source, id string) (memory.Episode, error)
	// EpisodesByID returns those of the fact scope that exist, by ordinal.
	EpisodesByID(ctx context.Context, fact scope.Scope, ids []string) ([]memory.Episode, error)
	// EpisodeRange returns the episodes of a fact scope with ordinals in r, by
	// ordinal. Of a store that lost some of them it returns [ErrLost].
	EpisodeRange(ctx context.Context, fact scope.Scope, r events.Range) ([]memory.Episode, error)
	// EpisodesBefore returns up to n episodes of a session (a full scope) whose
	// ordinals are below ordinal, the newest n, oldest first; or [ErrLost].
	EpisodesBefore(ctx context.Context, session scope.Scope, ordinal uint64, n int) ([]memory.Episode, error)
	Timeline
}

// Timeline reads what was said in order of time.
type Timeline interface {
	// Recent returns up to limit (1 to 1000) episodes within sel and the time
	// bounds, newest Timestamp first, ties by Ordinal, highest first; where q asks
	// for the oldest, in the reverse order.
	Recent(ctx context.Context, sel scope.Selector, q RecentQuery) ([]memory.Episode, error)
	// Sessions returns the sessions within sel, each as the full scope of its
	// episodes, in order of their beginning: the Timestamp of the oldest episode.
	// Episodes without a session are left out.
	Sessions(ctx context.Context, sel scope.Selector, q SessionQuery) ([]scope.Scope, error)
}

// SessionQuery bounds a list of sessions.
type SessionQuery struct {
	// Limit is 1 to 1000; Skip leaves out as many before.
	Skip, Limit int
	// Newest lists the session that began last first.
	Newest bool
	// Before is exclusive and compares with the beginning; zero means unbounded.
	Before time.Time
}

// RecentQuery bounds a recent read.
type RecentQuery struct {
	Limit int
	// Oldest reverses the order.
	Oldest bool
	// After is exclusive, Before exclusive; zero means unbounded. Both compare
	// with Timestamp.
	After, Before time.Time
	Filter        *Filter
	// Cursor continues behind the last episode of the page before.
	Cursor *EpisodeCursor
}

// Precedes reports whether a comes before b in the order that q asks for.
func (q RecentQuery) Precedes(a, b EpisodeCursor) bool {
	if q.Oldest {
		return b.Before(a)
	}
	return a.Before(b)
}

// EpisodeCursor is a place in the order of [EpisodeReader.Recent].
type EpisodeCursor struct {
	Timestamp time.Time
	Ordinal   uint64
	ID        string
	// Key is the episode's fact scope key, the last tie-break of a read that
	// spans scopes.
	Key string
}

// CursorOf is the place of e.
func CursorOf(e memory.Episode) EpisodeCursor {
	return EpisodeCursor{Timestamp: e.Timestamp, Ordinal: e.Ordinal, ID: e.ID, Key: e.Scope.Fact().Key()}
}

// Before reports whether c comes before d in the order of
// [EpisodeReader.Recent]: newest first, then highest ordinal, id and key.
func (c EpisodeCursor) Before(d EpisodeCursor) bool {
	if n := c.Timestamp.Compare(d.Timestamp); n != 0 {
		return n > 0
	}
	if c.Ordinal != d.Ordinal {
		return c.Ordinal > d.Ordinal
	}
	if c.ID != d.ID {
		return c.ID > d.ID
	}
	return c.Key > d.Key
}
