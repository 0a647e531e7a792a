package events

import (
	"cmp"
	"time"

	"palimpsest/pkg/scope"
)

// Meta is what the envelope says about a message.
type Meta struct {
	// ID is unique per source; see the package's identity rules.
	ID     string
	Source string
	Kind   Kind
	// Scope is decoded from the subject the message was published on.
	Scope scope.Scope
	// Time is when the message was published (the broker's time where the
	// publisher gave none). Handlers use it in place of the wall clock.
	Time time.Time
	// Arrived is when the broker took the message, whatever the publisher says;
	// the zero time outside a stream.
	Arrived time.Time
	// CorrelationID is the request or episode that began it all.
	CorrelationID string
	// CausationID is the message that this one follows.
	CausationID string
	// Traceparent is the W3C trace context, empty where there is none. A handler
	// is given that of its own span, where it is traced. Tracestate is what vendors
	// keep beside it.
	Traceparent, Tracestate string
	// Sequence is the message's sequence in its stream; 0 outside a stream.
	Sequence uint64
	// Delivery counts from 1 how often the message was handed out, tries again
	// in place included: above 1, an earlier attempt may have done some of its
	// work. It is 0 outside a consumer.
	Delivery int
}

// Event is a decoded and validated message.
type Event[P Payload] struct {
	Meta
	Data P
}

// Header begins every payload behind ingest.
type Header struct {
	// Scope is a fact scope.
	Scope scope.Scope `json:"scope"`
	// Incarnation counts erasures of the scope, from 0. A writer refuses a
	// message of an older incarnation, so that work under way cannot bring
	// back what was erased.
	Incarnation uint64 `json:"incarnation"`
}

// Owner implements [Payload].
func (h Header) Owner() scope.Scope { return h.Scope }

func (h Header) incarnation() uint64 { return h.Incarnation }

func (h Header) validate() error {
	if err := h.Scope.Validate(); err != nil {
		return invalid("scope", "%v", err)
	}
	if !h.Scope.IsFact() {
		return invalid("scope.session", "must be absent from a fact scope that names a user")
	}
	return nil
}

// Range is half-open on the left: the ordinals From+1 … To of a fact scope.
type Range struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Empty reports whether the range covers no ordinal.
func (r Range) Empty() bool { return r.To <= r.From }

// Len is the number of ordinals covered.
func (r Range) Len() uint64 {
	if r.Empty() {
		return 0
	}
	return r.To - r.From
}

// Cause says why a tick was issued.
type Cause string

// The causes of ticks.
const (
	CauseEvery       Cause = "every"
	CauseSessionEnd  Cause = "session_end"
	CauseCron        Cause = "cron"
	CauseRequest     Cause = "request"
	CauseLate        Cause = "late" // a retried dead letter: moves no watermark
	CauseMaintenance Cause = "maintenance"
)

// Class is the cost class of a rule. The work of each class has its own consumers,
// so that a slow class does not hold up another.
type Class string

// The classes of rules.
const (
	ClassRules Class = "rules" // rule packs: no call leaves the machine
	ClassModel Class = "model" // calls a model, which may be slow or down
)

// Valid reports whether c is one of the classes above.
func (c Class) Valid() bool { return c == ClassRules || c == ClassModel }

// Batch identifies the work of one tick on its whole way to the commit.
type Batch struct {
	Header
	Rule string `json:"rule"`
	// As is the rule that reads the range in place of Rule, whose watermark it moves;
	// empty for Rule itself.
	As string `json:"as,omitempty"`
	// Class is that of the rule; empty means [ClassRules].
	Class Class `json:"class,omitempty"`
	// Range is empty only in a late batch of candidates that were refused one by
	// one, the rest of whose range is settled, and where Upkeep is set.
	Range Range `json:"range"`
	// Upkeep is the work of a maintenance rule.
	Upkeep *Upkeep `json:"upkeep,omitempty"`
	Cause  Cause   `json:"cause"`
	// New says that the scope had no effect when the tick was issued. Its episodes are
	// decided without reading facts. If that made a decision wrong, the decision is
	// stale.
	New bool `json:"new,omitempty"`
	// Attempt counts, from 0, how often the range was issued or decided again.
	Attempt int `json:"attempt"`
	// Stale counts those attempts that were made because the basis went stale. An
	// outage makes many of the others, and must cost no range.
	Stale int `json:"stale,omitempty"`
	// Extractor is the name@version of what read the range; empty before that, and
	// where nothing did.
	Extractor string `json:"extractor,omitempty"`
	// Spent is what models charged for the batch so far, one entry for each request.
	Spent []Spent `json:"spent,omitempty"`
	// Skipped is why the range carries nothing (its tick or batch was buried);
	// empty otherwise.
	Skipped string `json:"skipped,omitempty"`
}

// By is the rule that reads the range.
func (b Batch) By() string { return cmp.Or(b.As, b.Rule) }

func (b Batch) validate() error {
	if err := b.Header.validate(); err != nil {
		return err
	}
	switch {
	case b.Rule == "":
		return invalid("rule", "is required")
	case b.Class != "" && !b.Class.Valid():
		return invalid("class", "%q is neither %s nor %s", clip(string(b.Class)), ClassRules, ClassModel)
	case b.Cause == "":
		return invalid("cause", "is required")
	case b.Upkeep != nil && !b.Range.Empty():
		return invalid("range", "is set beside upkeep")
	case b.Range.Empty() && b.Cause != CauseLate && b.Upkeep == nil:
		return invalid("range", "covers no ordinal: (%d, %d]", b.Range.From, b.Range.To)
	case b.Attempt < 0:
		return invalid("attempt", "is negative")
	case b.Stale < 0:
		return invalid("stale", "is negative")
	case b.Upkeep != nil:
		return b.Upkeep.validate()
	}
	return nil
}
