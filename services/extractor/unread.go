package extractor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"palimpsest/internal/extract"
	"palimpsest/pkg/events"
)

// excerpt bounds the reply that a letter shows, in bytes.
const excerpt = 4 << 10

// unreadable is a tick with an unreadable reply. As a letter it can be
// retried: the episodes are extracted again, and no watermark moves.
type unreadable struct {
	events.TickIssued
	Reply string `json:"reply"`
}

// unread returns the dead letter of an unreadable reply, none where there is no
// reply. The tick itself goes on.
func unread(in events.Event[events.TickIssued], why *extract.UnusableError) ([]events.Payload, error) {
	if why.Reply == "" {
		return nil, nil
	}
	raw, err := json.Marshal(unreadable{TickIssued: in.Data, Reply: why.Reply[:min(len(why.Reply), excerpt)]})
	if err != nil {
		return nil, fmt.Errorf("write dead letter: %w", err)
	}
	sum := sha256.Sum256(raw)
	return []events.Payload{events.MessageBuried{
		Scope: in.Data.Scope, Service: "extractor", Stream: "TICKS", Sequence: in.Sequence,
		Subject: events.Subject(in.Data), MessageKind: in.Data.Kind(),
		Code: events.CodeMalformed, Field: "reply", Reason: why.Error(), Attempts: max(in.Delivery, 1), BuriedAt: in.Time,
		Data: raw, Size: len(raw), SHA256: hex.EncodeToString(sum[:]),
	}}, nil
}
