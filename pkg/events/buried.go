package events

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"palimpsest/pkg/scope"
)

// MessageBuried is a dead letter: the refused message, its reader and the reason.
type MessageBuried struct {
	// Scope is that of the refused message's subject; a subject that names no
	// scope leaves it as far as it could be read.
	Scope    scope.Scope `json:"-"`
	Service  string      `json:"service"`
	Stream   string      `json:"stream"`
	Sequence uint64      `json:"sequence"`
	Subject  string      `json:"subject"`
	// MessageKind is the refused message's kind where it could be read.
	MessageKind Kind                `json:"message_kind,omitempty"`
	Code        string              `json:"code"`
	Field       string              `json:"field,omitempty"`
	Reason      string              `json:"reason"`
	Causes      []string            `json:"causes,omitempty"` // the error chain, outermost first
	Attempts    int                 `json:"attempts"`
	Headers     map[string][]string `json:"headers,omitempty"`
	// Data is the refused body, or its first 4 KiB where Truncated; nothing of an
	// incognito episode, whose Headers and SHA256 are left out too.
	Data      []byte    `json:"data"`
	Truncated bool      `json:"truncated,omitempty"`
	Size      int       `json:"size"`   // bytes of the whole body
	SHA256    string    `json:"sha256"` // hex, of the whole body
	BuriedAt  time.Time `json:"buried_at"`
}

// Kind implements [Payload].
func (MessageBuried) Kind() Kind { return KindMessageBuried }

// Owner implements [Payload].
func (m MessageBuried) Owner() scope.Scope { return m.Scope }

// Validate implements [Payload].
func (m MessageBuried) Validate() error {
	switch {
	case m.Service == "":
		return invalid("service", "is required")
	case m.Code == "":
		return invalid("code", "is required")
	case m.Reason == "":
		return invalid("reason", "is required")
	}
	return nil
}

// MarshalJSON implements [json.Marshaler]. A header that is not UTF-8 is
// written as a quoted Go string: JSON would make one of two such names.
func (m MessageBuried) MarshalJSON() ([]byte, error) {
	type wire MessageBuried
	headers := make(map[string][]string, len(m.Headers))
	for name, values := range m.Headers {
		shown := make([]string, len(values))
		for i, v := range values {
			shown[i] = legible(v)
		}
		headers[legible(name)] = shown
	}
	m.Headers = headers
	return json.Marshal(wire(m))
}

func legible(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strconv.Quote(text)
}
