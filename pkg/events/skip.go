package events

// Skippable is work on a range that something else waits for. When a message
// of it is buried, what Skip returns is published in its place, so that nothing
// behind the range stalls.
type Skippable interface {
	Payload
	// Skip returns the batch, without candidates, that carries the range on
	// with the reason it was skipped for; nil where nothing waits (a batch of a
	// command has no range). It keeps what the range settles anyway: the ends
	// of sessions, and the episodes whose outcome is announced.
	Skip(reason string) Payload
}

// Skip implements [Skippable].
func (t TickIssued) Skip(reason string) Payload {
	return skipped(t.Batch, reason, t.SessionEnds, nil)
}

// Skip implements [Skippable].
func (c CandidatesExtracted) Skip(reason string) Payload {
	return skipped(c.Batch, reason, c.SessionEnds, c.Episodes)
}

// Skip implements [Skippable].
func (d DeltasDecided) Skip(reason string) Payload {
	if d.Command != nil {
		return nil
	}
	return skipped(d.Batch, reason, d.SessionEnds, d.Episodes)
}

func skipped(b Batch, reason string, ends []SessionEnd, episodes []EpisodeRef) Payload {
	b.Skipped = reason
	return CandidatesExtracted{Batch: b, SessionEnds: ends, Episodes: episodes}
}
