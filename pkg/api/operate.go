package api

import (
	"encoding/json"
	"time"
)

// Account is what became of one rule's episodes in one scope; it must balance:
// accepted = consolidated + pending + skipped.
type Account struct {
	Scope
	Rule         string `json:"rule"`
	Accepted     uint64 `json:"accepted"`
	Consolidated uint64 `json:"consolidated"`
	Pending      uint64 `json:"pending"`
	Skipped      uint64 `json:"skipped"`
	Candidates   uint64 `json:"candidates"`
	Decided      uint64 `json:"decided"`
	Held         uint64 `json:"held"`
	Dropped      uint64 `json:"dropped"`
}

// Digest names all that is known: equal memories have equal ones.
type Digest struct {
	// Digest is the SHA-256, in hex, of the canonical export of all projects.
	Digest string `json:"digest"`
	// Content: without wall-clock fields.
	Content bool `json:"content"`
}

// Ledger is the accounts and their sum per rule.
type Ledger struct {
	Totals   []Account `json:"totals" doc:"One per rule, over all scopes."`
	Accounts []Account `json:"accounts,omitempty"`
	Balanced bool      `json:"balanced"`
}

// DeadLetter is a refused message.
type DeadLetter struct {
	Sequence  uint64    `json:"sequence" doc:"Position in the stream of dead letters."`
	Service   string    `json:"service"`
	Stream    string    `json:"stream"`
	MessageAt uint64    `json:"message_sequence"`
	Subject   string    `json:"subject"`
	Kind      string    `json:"kind,omitempty"`
	Code      string    `json:"code"`
	Field     string    `json:"field,omitempty"`
	Reason    string    `json:"reason"`
	Causes    []string  `json:"causes,omitempty"`
	Attempts  int       `json:"attempts"`
	Size      int       `json:"size" doc:"Bytes of the refused body."`
	SHA256    string    `json:"sha256"`
	Truncated bool      `json:"truncated,omitempty"`
	BuriedAt  time.Time `json:"buried_at"`
	// Headers and Data are given for a single letter only.
	Headers map[string][]string `json:"headers,omitempty"`
	Data    []byte              `json:"data,omitempty" doc:"Base64 of the refused body, or of its first 4 KiB."`
}

// DeadLetterPage is a page of dead letters, oldest first.
type DeadLetterPage struct {
	Letters []DeadLetter `json:"letters"`
	Next    uint64       `json:"next,omitempty" doc:"Continue after this sequence; absent on the last page."`
}

// Settled is the answer to a retry or a drop.
type Settled struct {
	Sequence uint64 `json:"sequence"`
	Action   string `json:"action" enum:"retried,dropped"`
}

// AuditLine is one line of the replay: an effect as it was committed.
type AuditLine struct {
	Sequence uint64    `json:"sequence"`
	ID       string    `json:"id"`
	Type     string    `json:"type"`
	Source   string    `json:"source"`
	Time     time.Time `json:"time"`
	Subject  string    `json:"subject" doc:"Key of the fact scope."`
	Project  string    `json:"project"`
	// CorrelationID is the request or episode that began it, CausationID the
	// message before, Traceparent the trace that all are of.
	CorrelationID string          `json:"correlation_id,omitempty"`
	CausationID   string          `json:"causation_id,omitempty"`
	Traceparent   string          `json:"traceparent,omitempty"`
	Data          json.RawMessage `json:"data"`
}

// Readiness says how each dependency is.
type Readiness struct {
	Ready  bool             `json:"ready"`
	Checks map[string]Check `json:"checks"`
}

// WithoutDetails leaves what callers may know that are no operators of all projects.
// Details and errors name addresses, and the scopes of any project.
func (r Readiness) WithoutDetails() Readiness {
	checks := make(map[string]Check, len(r.Checks))
	for name, check := range r.Checks {
		checks[name] = Check{OK: check.OK}
	}
	r.Checks = checks
	return r
}

// DetailSequence is the detail of the check "audit" that says up to which sequence of
// AUDIT the audit log has every effect.
const DetailSequence = "last_sequence"

// Check is one dependency.
type Check struct {
	OK        bool           `json:"ok"`
	Error     string         `json:"error,omitempty"`
	LatencyMS float64        `json:"latency_ms"`
	Details   map[string]any `json:"details,omitempty"`
}
