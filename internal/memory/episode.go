package memory

import (
	"time"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Episode is something that happened, as it is stored.
type Episode struct {
	// ID is the publisher's, unique per (project, scope, source).
	ID     string
	Source string
	// Scope is the full scope; the episode counts in Scope.Fact().
	Scope   scope.Scope
	Role    events.Role
	Content string
	// Timestamp is when it happened, with its UTC offset; Clamped says that the
	// publisher's was later than arrival + 5 min.
	Timestamp  time.Time
	Clamped    bool
	ArrivedAt  time.Time
	SourceNode string
	Metadata   map[string]any
	Mode       events.Mode
	// Seq is the sequence in the EPISODES stream.
	Seq uint64
	// Ordinal counts 1, 2, 3… within the fact scope; given when stored.
	Ordinal       uint64
	CorrelationID string
	// Traceparent is the trace context of its ingestion, empty where that was not
	// traced. What becomes of the episode goes on from there.
	Traceparent string
	// Request and Prompt: the episode asked for a tick of its own.
	Request bool
	Prompt  string
	// Verbatim stores the content as a fact, without inference.
	Verbatim bool
}

// Asked is what an episode asks for. One tick covers only episodes that ask for the
// same.
type Asked struct {
	Request bool
	Prompt  string
}

// Asked returns what e asks for.
func (e Episode) Asked() Asked { return Asked{e.Request, e.Prompt} }

// AskedAt returns what the episode of an ordinal asks for; one that is not there asks
// for nothing.
func AskedAt(episodes []Episode, ordinal uint64) Asked {
	for _, e := range episodes {
		if e.Ordinal == ordinal {
			return e.Asked()
		}
	}
	return Asked{}
}

// Session is the registry's row of one session.
type Session struct {
	Scope       scope.Scope
	FirstSeen   time.Time // arrival of its first episode
	LastSeen    time.Time // arrival of its newest episode
	LastOrdinal uint64
	// EndedAt is zero while the session is open; an episode after the end opens
	// it again.
	EndedAt  time.Time
	EndCause events.EndCause
	// Live is false while all its episodes were backfilled: such a session
	// causes neither idle nor switch ends.
	Live bool
}

// State is where one fact scope stands.
type State struct {
	Scope       scope.Scope
	Incarnation uint64
	// LastOrdinal is the newest episode's; 0 for a scope without episodes.
	LastOrdinal uint64
	// Revision counts the effects applied; AuditSeq is the stream sequence of
	// the newest, 0 for none.
	Revision uint64
	AuditSeq uint64
	// Watermarks holds, per rule, the last ordinal consolidated.
	Watermarks map[string]uint64
	// NoHolds says that no candidate was ever held in the scope. False says nothing.
	NoHolds bool
}

// Address is how a version of a fact is named: {id}@{revision}.
type Address struct {
	ID       string
	Revision uint64
}
