package store

import (
	"context"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// StateReader says where a fact scope stands.
type StateReader interface {
	// State returns the zero State (with Scope set) for an unknown scope.
	State(ctx context.Context, fact scope.Scope) (memory.State, error)
}

// WholeReader confirms that reads missed nothing. A decision that AUDIT keeps needs it:
// lost rows are put back later, but a decision that was made without them stays.
type WholeReader interface {
	// ReadWhole runs read and returns its error, or [ErrLost] if the store lost
	// acknowledged rows meanwhile: read may have missed some of them.
	ReadWhole(ctx context.Context, read func() error) error
}

// ReadWhole returns what read returns, or [ErrLost] if it may have missed rows.
func ReadWhole[T any](ctx context.Context, from WholeReader, read func() (T, error)) (out T, err error) {
	err = from.ReadWhole(ctx, func() (err error) {
		out, err = read()
		return err
	})
	return out, err
}

// Schedule is the scheduler's role. Nothing of it is part of the export: the
// claims only save work.
type Schedule interface {
	StateReader
	// Look returns where a fact scope stands, with all that tells most of the time
	// that nothing is due there.
	Look(ctx context.Context, fact scope.Scope) (Standing, error)
	// Pending calls yield for each fact scope, of any project, whose last
	// ordinal is above its watermark of rule, ordered by (project, key), until
	// yield returns false. It must not scan scopes that have nothing pending, nor
	// make a round trip for each that has.
	Pending(ctx context.Context, rule string, yield func(Pending) bool) error
	// Claim records that the tick is under way, if the row of (rule, scope) is
	// still expect (the zero Claim: no row). It returns the row that stands
	// afterwards and whether it is the caller's.
	Claim(ctx context.Context, fact scope.Scope, rule string, expect, next Claim) (Claim, bool, error)
	// LastFire and SetLastFire keep when a rule's cron last fired; zero where
	// it never did. SetLastFire must not move it back.
	LastFire(ctx context.Context, rule string) (time.Time, error)
	SetLastFire(ctx context.Context, rule string, at time.Time) error
	// IdleSessions calls yield for each open, live session last seen before at.
	IdleSessions(ctx context.Context, at time.Time, yield func(memory.Session) bool) error
	// OpenSessions returns the open, live sessions of a fact scope. It must not
	// read those that are not live: an import leaves thousands of them.
	OpenSessions(ctx context.Context, fact scope.Scope) ([]memory.Session, error)
	// EndsAbove returns the session ends of the fact scope with a last ordinal
	// above the watermark that from names.
	EndsAbove(ctx context.Context, fact scope.Scope, from uint64) ([]events.SessionEnd, error)
	// DueHolds calls yield for each held candidate, of any project, that is due
	// at or before at, by Due, until yield returns false. It must not scan those
	// that are not.
	DueHolds(ctx context.Context, at time.Time, yield func(DueHold) bool) error
	// Decayed returns facts that are due for pruning (see [Fact.Due]) at or before
	// q.At, up to q.Limit of them behind the first q.Offset. The order stays while
	// nothing is written. It must not read those that are not due.
	Decayed(ctx context.Context, q DecayQuery) ([]Decayed, error)
	// Undescribed returns in the same way the entities that are due for a summary
	// (see [memory.DescribeAt]).
	Undescribed(ctx context.Context, q DecayQuery) ([]Decayed, error)
}

// DecayQuery asks for facts or entities that are due for maintenance.
type DecayQuery struct {
	// Scope keeps those of one fact scope; nil keeps all, of any project.
	Scope *scope.Scope
	At    time.Time
	// Offset counts the rows to skip, from 0.
	Offset int
	Limit  int // 1 to 1000
}

// Decayed names a fact or an entity that is due for maintenance.
type Decayed struct {
	Scope       scope.Scope
	Incarnation uint64
	ID          string
}

// Pending is a scope with episodes above the watermark of a rule, with all that
// tells whether the rule is due there but for its cron.
type Pending struct {
	memory.State
	// Claim is the row of (rule, scope), the zero Claim where there is none.
	Claim Claim
	// Ended says whether a session end may have a last ordinal above the watermark.
	Ended bool
	// Unrequested says that no episode above the watermark is a request. False says
	// nothing.
	Unrequested bool
}

// Standing is where a fact scope stands.
type Standing struct {
	memory.State
	// Claims are its rows by rule.
	Claims map[string]Claim
	// Ended is at least the last ordinal of each of its session ends.
	Ended uint64
	// Open is at least the number of its sessions that are open and live.
	Open int
	// Requested is at least the ordinal of each of its episodes that is a request. It
	// is nil where the store does not know.
	Requested *uint64
}

// Pending is what s tells of a rule.
func (s Standing) Pending(rule string) Pending {
	return Pending{
		State: s.State, Claim: s.Claims[rule], Ended: s.Ended > s.Watermarks[rule],
		Unrequested: s.Requested != nil && *s.Requested <= s.Watermarks[rule],
	}
}

// DueHold names a held candidate whose time has come.
type DueHold struct {
	Scope       scope.Scope
	Incarnation uint64
	ID          string
	Due         time.Time
}

// Claim is one tick under way.
type Claim struct {
	Range   events.Range
	At      time.Time
	Attempt int
}
