package events

import "palimpsest/pkg/scope"

// Kind is the CloudEvents type of a message: palimpsest.<noun>.<verb>.v<major>.
type Kind string

// The kinds, in the order in which data meets them.
const (
	KindEpisodeRecorded     Kind = "palimpsest.episode.recorded.v1"
	KindSessionEnded        Kind = "palimpsest.session.ended.v1"
	KindEpisodeStored       Kind = "palimpsest.episode.stored.v1"
	KindTickIssued          Kind = "palimpsest.tick.issued.v1"
	KindCandidatesExtracted Kind = "palimpsest.candidates.extracted.v1"
	KindCommandRequested    Kind = "palimpsest.command.requested.v1"
	KindDeltasDecided       Kind = "palimpsest.deltas.decided.v1"
	KindEffectCommitted     Kind = "palimpsest.effect.committed.v1"
	KindUserErased          Kind = "palimpsest.user.erased.v1"
	KindFactReturned        Kind = "palimpsest.fact.returned.v1"
	KindOutcomeAnnounced    Kind = "palimpsest.outcome.announced.v1"
	KindMessageBuried       Kind = "palimpsest.message.buried.v1"
)

// Payload is the data of one kind of message.
type Payload interface {
	// Kind is constant for the type.
	Kind() Kind
	// Owner is the scope whose subject the message is published on: the full
	// scope of an episode or session end, the fact scope of everything else.
	Owner() scope.Scope
	// Validate returns a [*FieldError] naming the first offending field.
	Validate() error
}

// Identified is implemented by payloads whose message id must not depend on
// what caused them: two replicas that come to the same conclusion publish the
// same id. Payloads that do not implement it get hash(cause, kind, index).
type Identified interface {
	// Identity returns the parts that the message id is the hash of.
	Identity() []string
}

// Continued is implemented by payloads that continue the trace of their subject
// matter, not that of the message before them.
type Continued interface {
	// Continues returns a W3C trace context; empty for that of the message.
	Continues() string
}

// Kinds lists every kind, in the order in which data meets them.
func Kinds() []Kind {
	return []Kind{
		KindEpisodeRecorded, KindSessionEnded, KindEpisodeStored, KindTickIssued, KindCandidatesExtracted,
		KindCommandRequested, KindDeltasDecided, KindEffectCommitted, KindUserErased, KindFactReturned, KindOutcomeAnnounced,
		KindMessageBuried,
	}
}
