package events

// Skippable is work that other work waits for. When a message of it becomes a dead
// letter, the payloads that Skip returns are published in its place, so that no
// range behind it stalls and the caller of a command is answered.
type Skippable interface {
	Payload
	// Skip returns the batch, without candidates and deltas, that carries the
	// work on with the reason it was skipped for. It keeps what is settled
	// anyway: the ends of sessions, the episodes whose outcome is announced, and
	// the command that is refused. It is nil where nothing waits: a late batch
	// and maintenance move no watermark.
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
func (c CommandRequested) Skip(reason string) Payload {
	return refused(c.Header, c.CommandRef, reason)
}

// Skip implements [Skippable].
func (d DeltasDecided) Skip(reason string) Payload {
	if d.Command != nil {
		return refused(d.Header, *d.Command, reason)
	}
	return skipped(d.Batch, reason, d.SessionEnds, d.Episodes)
}

func skipped(b Batch, reason string, ends []SessionEnd, episodes []EpisodeRef) Payload {
	if b.Cause == CauseLate || b.Upkeep != nil {
		return nil
	}
	b.Skipped = reason
	return CandidatesExtracted{Batch: b, SessionEnds: ends, Episodes: episodes}
}

// refused changes nothing, whatever revisions the command was made against.
func refused(h Header, c CommandRef, reason string) Payload {
	c.IfMatch = nil
	return DeltasDecided{Batch: Batch{Header: h, Rule: RuleCommand, Cause: CauseRequest, Skipped: reason}, Command: &c}
}
