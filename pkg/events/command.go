package events

import (
	"strconv"
	"time"
)

// CommandOp is what an API caller asks for.
type CommandOp string

// The commands.
const (
	OpRemember CommandOp = "remember"
	OpCorrect  CommandOp = "correct"
	OpConfirm  CommandOp = "confirm"
	OpRestore  CommandOp = "restore"
	OpDelete   CommandOp = "delete"
	// OpDeleteScope soft-deletes every valid fact of the fact scope, or, with a
	// Session, what only that session contributed to.
	OpDeleteScope CommandOp = "delete_scope"
	// OpRelease takes a candidate out of the held buffer and decides on it at
	// once. OpReleaseDue does so when it is due, and only if the rule that held
	// it lets it pass.
	OpRelease    CommandOp = "release"
	OpReleaseDue CommandOp = "release_due"
	// OpDismiss takes a candidate out of the held buffer and changes nothing else.
	OpDismiss CommandOp = "dismiss"
	// OpUndo restores earlier states of facts and held candidates.
	OpUndo CommandOp = "undo"
	// OpRate records a rating of a fact, or of an answer. It changes no fact.
	OpRate  CommandOp = "rate"
	OpErase CommandOp = "erase"
)

// RuleCommand is the rule that the deltas and effects of commands are filed under.
const RuleCommand = "command"

// CommandRef identifies a command and the fact revisions it was made against.
type CommandRef struct {
	RequestID string    `json:"request_id"`
	Op        CommandOp `json:"op"`
	// IfMatch maps fact ids to the revision the caller saw; a fact that has
	// another one by now is a conflict.
	IfMatch map[string]uint64 `json:"if_match,omitempty"`
	// Rating is what rate brings. The effect has it too, so that the audit stream
	// keeps the caller's reason.
	Rating *Rating `json:"rating,omitempty"`
}

// Rating is how good a caller found a fact or an answer.
type Rating struct {
	Value RatingValue `json:"value"`
	// EpisodeID is the answer: a message of the scope. It is empty where a fact is
	// rated.
	EpisodeID string `json:"episode_id,omitempty"`
	Reason    string `json:"reason,omitempty"` // in the caller's words
}

// RatingValue is one of the values of a rating.
type RatingValue string

// The values of ratings.
const (
	RatingPositive     RatingValue = "positive"
	RatingNegative     RatingValue = "negative"
	RatingVeryNegative RatingValue = "very_negative"
	// RatingNone takes an earlier rating back.
	RatingNone RatingValue = "none"
)

// RuleFeedback begins the RuleID of a delta that records a rating. The value follows.
const RuleFeedback = "feedback:"

func (r Rating) validate() error {
	switch r.Value {
	case RatingPositive, RatingNegative, RatingVeryNegative, RatingNone:
		return nil
	}
	return invalid("rating.value", "%q is none of positive, negative, very_negative, none", clip(string(r.Value)))
}

func (c CommandRef) validate() error {
	if c.RequestID == "" {
		return invalid("request_id", "is required")
	}
	if c.Rating != nil {
		if err := c.Rating.validate(); err != nil {
			return err
		}
	}
	switch c.Op {
	case OpRemember, OpCorrect, OpConfirm, OpRestore, OpDelete, OpDeleteScope, OpRelease, OpReleaseDue, OpDismiss, OpUndo, OpRate, OpErase:
		return nil
	}
	return invalid("op", "%q is not a command", clip(string(c.Op)))
}

// CommandRequested is a change that an API caller asked for.
type CommandRequested struct {
	Header
	CommandRef
	// Actor is api:{key name}, api:anonymous where no key is needed, or
	// palimpsest:{service} for a command without a caller.
	Actor string `json:"actor"`
	// FactID is the fact that correct, confirm, restore, delete and rate concern.
	FactID string `json:"fact_id,omitempty"`
	// HoldID is what release, release_due and dismiss concern.
	HoldID string `json:"hold_id,omitempty"`
	// Candidate is what remember and correct bring.
	Candidate *Candidate `json:"candidate,omitempty"`
	Session   string     `json:"session,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	// Undo is what undo does: all of it, or, where a fact has another revision by
	// now, none.
	Undo []UndoStep `json:"undo,omitempty"`
	At   time.Time  `json:"at"`
	// Attempt counts, from 0, how often the command was decided again because the
	// scope changed under the decision.
	Attempt int `json:"attempt,omitempty"`
}

// Kind implements [Payload].
func (CommandRequested) Kind() Kind { return KindCommandRequested }

// Identity implements [Identified]: a repeated request is the same command, and
// one that is to be decided again is another message.
func (c CommandRequested) Identity() []string {
	id := []string{c.Scope.Project, c.Scope.Key(), c.RequestID}
	if c.Attempt > 0 {
		id = append(id, strconv.Itoa(c.Attempt))
	}
	return id
}

// Validate implements [Payload].
func (c CommandRequested) Validate() error {
	if err := c.Header.validate(); err != nil {
		return err
	}
	if err := c.CommandRef.validate(); err != nil {
		return err
	}
	if c.Attempt < 0 {
		return invalid("attempt", "is negative")
	}
	if c.Actor == "" {
		return invalid("actor", "is required")
	}
	switch c.Op {
	case OpCorrect, OpConfirm, OpRestore, OpDelete:
		if c.FactID == "" {
			return invalid("fact_id", "is required by %s", c.Op)
		}
	case OpRelease, OpReleaseDue, OpDismiss:
		if c.HoldID == "" {
			return invalid("hold_id", "is required by %s", c.Op)
		}
	}
	if (c.Op == OpRemember || c.Op == OpCorrect) && c.Candidate == nil {
		return invalid("candidate", "is required by %s", c.Op)
	}
	if c.Op == OpRate {
		if c.Rating == nil {
			return invalid("rating", "is required by %s", c.Op)
		}
		if (c.FactID == "") == (c.Rating.EpisodeID == "") {
			return invalid("fact_id", "exactly one of fact_id and rating.episode_id is required")
		}
	}
	if c.Op != OpUndo {
		return nil
	}
	if len(c.Undo) == 0 || len(c.Undo) > MaxUndoSteps {
		return invalid("undo", "has %d members, outside 1 to %d", len(c.Undo), MaxUndoSteps)
	}
	for i, step := range c.Undo {
		if err := step.validate(); err != nil {
			return within("undo["+strconv.Itoa(i)+"]", err)
		}
	}
	return nil
}

// MaxUndoSteps bounds the steps of one command.
const MaxUndoSteps = 100

// UndoStep restores an earlier state of one fact or held candidate. Exactly one
// of FactID, HoldID and Hold is set.
type UndoStep struct {
	FactID string `json:"fact_id,omitempty"`
	// Revision is the newest of the fact that the step was made from.
	Revision uint64 `json:"revision,omitempty"`
	// Restore is the version to bring back; nil closes the fact as of its beginning.
	Restore *Fact `json:"restore,omitempty"`
	// Replaces lists the facts that cannot hold beside Restore and are closed.
	Replaces []string `json:"replaces,omitempty"`
	// HoldID is a held candidate to dismiss; Hold is one to hold again.
	HoldID string `json:"hold_id,omitempty"`
	Hold   *Hold  `json:"hold,omitempty"`
}

// RestoresOnly reports whether Restore holds, and is of a subject and predicate of which
// only one fact may.
func (u UndoStep) RestoresOnly() bool {
	f := u.Restore
	return f != nil && f.ValidUntil == nil && f.ArchivedAt == nil && f.Cardinality == One && f.Predicate != ""
}

func (u UndoStep) validate() error {
	n := 0
	for _, set := range []bool{u.FactID != "", u.HoldID != "", u.Hold != nil} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return invalid("fact_id", "exactly one of fact_id, hold_id and hold is required")
	case u.FactID != "" && u.Revision == 0:
		return invalid("revision", "is required, from 1")
	case u.Restore != nil && u.Restore.ID != u.FactID:
		return invalid("restore.id", "is not that of the fact")
	case u.Hold != nil && u.Hold.ID == "":
		return invalid("hold.id", "is required")
	}
	return nil
}
