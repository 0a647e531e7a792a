package pipeline

import (
	"encoding/json"

	"palimpsest/pkg/events"
)

// skip returns the stand-in of a buried message of In's kind. A message that is
// refused for a field can still name its range, so skip reads it as leniently as the
// stand-in allows.
func skip[In events.Payload](m decoded, reason string) events.Payload {
	var in In
	if e, err := decodeAs[In](m); err == nil {
		in = e.Data
	} else if json.Unmarshal(m.data, &in) != nil || in.Owner() != m.meta.Scope {
		return nil
	}
	work, ok := any(in).(events.Skippable)
	if !ok || skippedAlready(in) {
		return nil
	}
	p := work.Skip(reason)
	if p == nil || p.Validate() != nil {
		return nil
	}
	return p
}

// skippedAlready reports whether p is the stand-in of a buried batch. A stand-in gets
// none itself, or the range would loop for ever. The range is issued again when it is
// overdue.
func skippedAlready(p events.Payload) bool {
	switch p := p.(type) {
	case events.TickIssued:
		return p.Skipped != ""
	case events.CandidatesExtracted:
		return p.Skipped != ""
	case events.DeltasDecided:
		return p.Skipped != ""
	}
	return false
}
