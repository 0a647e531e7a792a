package decider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"palimpsest/internal/decide"
	"palimpsest/pkg/events"
)

// letters returns the decided batch and a dead letter for each candidate that
// no decision was possible on. The other deltas of the batch apply.
func (s *Service) letters(
	in events.Event[events.CandidatesExtracted], out events.DeltasDecided, refused []refusal,
) ([]events.Payload, error) {
	payloads := []events.Payload{out}
	for _, r := range refused {
		letter, err := bury(in, r)
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, letter)
	}
	return payloads, nil
}

// sides are the two sides of a conflict in a dead letter: the candidate and the
// known facts. The candidate is a batch of its own, so that the letter can be
// retried. The range of that batch is empty, because the rest of the range is
// settled without it.
type sides struct {
	events.Batch
	Candidates []events.Candidate `json:"candidates"`
	Missing    []string           `json:"missing,omitempty"`
	Found      []events.Fact      `json:"found,omitempty"`
}

func bury(in events.Event[events.CandidatesExtracted], r refusal) (events.MessageBuried, error) {
	letter := events.MessageBuried{
		Scope: in.Data.Scope, Service: name, Stream: "CANDIDATES", Sequence: in.Sequence,
		Subject: events.Subject(in.Data), MessageKind: in.Data.Kind(),
		Code: events.CodeInvalidField, Reason: r.err.Error(), Attempts: max(in.Delivery, 1), BuriedAt: in.Time,
	}
	alone := in.Data.Batch
	alone.Range.From = alone.Range.To
	body := sides{Batch: alone, Candidates: []events.Candidate{r.candidate}}
	var conflict *decide.FactConflictError
	var invalid *decide.InvalidCandidateError
	switch {
	case errors.As(r.err, &conflict):
		letter.Code, letter.Field = events.CodeFactConflict, "metadata."+events.MetaReplaces
		body.Missing, body.Found = conflict.Missing, conflict.Found
	case errors.As(r.err, &invalid):
		letter.Field = invalid.Field
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return letter, fmt.Errorf("write dead letter: %w", err)
	}
	sum := sha256.Sum256(raw)
	letter.Data, letter.Size, letter.SHA256 = raw, len(raw), hex.EncodeToString(sum[:])
	return letter, nil
}
