package decider

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/llm"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// maxPasses bounds how often a batch is decided where a fact that is to be
// replaced is not there: it may be about to be committed.
const maxPasses = 3

// decide handles one batch of candidates.
func (s *Service) decide(ctx context.Context, in events.Event[events.CandidatesExtracted]) ([]events.Payload, error) {
	ctx, bill := llm.Billed(ctx)
	if in.Data.New {
		in.Data.New = false // a batch that comes back is decided on the facts in the store
		if out, err := s.decideNew(ctx, in, bill); out != nil || err != nil {
			return out, err
		}
	}
	return store.ReadWhole(ctx, s.deps.Whole, func() ([]events.Payload, error) { return s.decideBatch(ctx, in, bill) })
}

// decideNew decides a batch of a scope in which nothing was known, and reads nothing. It
// returns nothing where a candidate is refused: the fact that it needs may exist by now.
func (s *Service) decideNew(ctx context.Context, in events.Event[events.CandidatesExtracted], bill *llm.Bill) ([]events.Payload, error) {
	out, refused, err := s.decideOn(ctx, in, memory.State{Scope: in.Data.Scope, Incarnation: in.Data.Incarnation})
	if after, paused := llm.Paused(err); paused {
		return nil, pipeline.Later(after, err)
	}
	if err != nil || len(refused) > 0 {
		return nil, err
	}
	out.Spent = events.Charge(out.Spent, bill.Spent())
	return s.letters(in, out, nil)
}

func (s *Service) decideBatch(ctx context.Context, in events.Event[events.CandidatesExtracted], bill *llm.Bill) ([]events.Payload, error) {
	before := uint64(0)
	for pass := 1; ; pass++ {
		state, err := s.deps.State.State(ctx, in.Data.Scope)
		if err != nil {
			return nil, err
		}
		if in.Data.Incarnation < state.Incarnation {
			return nil, nil // the scope was erased since
		}
		out, refused, err := s.decideOn(ctx, in, state)
		if after, paused := llm.Paused(err); paused {
			return nil, pipeline.Later(after, err)
		}
		if err != nil {
			return nil, err
		}
		moved := pass == 1 || state.Revision != before
		if len(refused) == 0 || pass == maxPasses || !moved {
			out.Spent = events.Charge(out.Spent, bill.Spent())
			return s.letters(in, out, refused)
		}
		before = state.Revision
	}
}

// refusal is a candidate that cannot be decided, and why.
type refusal struct {
	candidate events.Candidate
	err       error
}

// decideOn decides the batch on one state of the scope.
func (s *Service) decideOn(
	ctx context.Context, in events.Event[events.CandidatesExtracted], state memory.State,
) (events.DeltasDecided, []refusal, error) {
	b := in.Data
	out := events.DeltasDecided{
		Batch: b.Batch, Basis: state.Revision, BasisSequence: state.AuditSeq, Footprint: &events.Footprint{},
		SessionEnds: b.SessionEnds, Episodes: b.Episodes, Candidates: b.Candidates,
	}
	if b.Skipped != "" || len(b.Candidates) == 0 && len(b.SessionEnds) == 0 {
		return out, nil, nil
	}
	if b.Upkeep != nil && b.Upkeep.Step == events.StepEnrich {
		return out, nil, s.enrich(ctx, in, &out)
	}
	if b.Upkeep != nil {
		return out, nil, s.prune(ctx, in, &out)
	}
	rule := s.rule(b.By())
	decider := s.decider(rule)
	var held []events.Hold
	if state.Revision > 0 && !state.NoHolds {
		var err error
		if held, err = s.deps.Facts.Holds(ctx, b.Scope); err != nil {
			return out, nil, err
		}
	}
	j, err := s.judge(in, rule, decider.Name(), held)
	if err != nil {
		return out, nil, err
	}
	if err := j.settle(rule, held); err != nil {
		return out, nil, err
	}
	edges, passed, err := causes(in, j.passed)
	if err != nil {
		return out, nil, err
	}
	noops := slices.Concat(j.deltas, edges)
	out.Candidates = j.taken
	look := newTrail(s.lookup(b.Scope, latest(in), state))
	known := decide.Known{
		Scope: b.Scope, At: in.Time, Cause: in.ID, Lookup: look,
		Breaker: s.breaker(), Held: held, Prompt: rule.DecisionPrompt, Decay: s.decay,
	}
	decision, refused, err := reconcile(ctx, decider, passed, known)
	if err != nil {
		return out, nil, err
	}
	for _, r := range refused {
		noop, err := events.NewNoop(provenance(in, r.candidate, events.ReasonFactConflict, "refused", decider.Name()), "")
		if err != nil {
			return out, nil, err
		}
		noops = append(noops, noop)
	}
	look.decided(passed)
	out.Footprint = look.footprint()
	out.Deltas, out.Mentions = slices.Concat(noops, decision.Deltas), decision.Mentions
	archived, err := s.archive(ctx, in, state, out.Deltas, decider.Name())
	out.Deltas = append(out.Deltas, archived...)
	return out, refused, err
}

// latest is the instant whose facts are compared with: a statement may claim to
// be a little ahead of the message that carries it.
func latest(in events.Event[events.CandidatesExtracted]) time.Time {
	at := in.Time
	for _, c := range in.Data.Candidates {
		if c.EventTime.After(at) {
			at = c.EventTime
		}
	}
	return at
}

// reconcile decides on candidates, leaving out one after the other those that
// no decision is possible on.
func reconcile(
	ctx context.Context, decider decide.Decider, candidates []events.Candidate, known decide.Known,
) (decide.Decision, []refusal, error) {
	var refused []refusal
	for {
		decision, err := decider.Decide(ctx, candidates, known)
		if err == nil {
			return decision, refused, nil
		}
		id, ok := refusedCandidate(err)
		rest := make([]events.Candidate, 0, len(candidates))
		for _, c := range candidates {
			if ok && c.ID == id {
				refused = append(refused, refusal{c, err})
			} else {
				rest = append(rest, c)
			}
		}
		if len(rest) == len(candidates) {
			return decide.Decision{}, nil, err
		}
		candidates = rest
	}
}

func refusedCandidate(err error) (id string, ok bool) {
	var conflict *decide.FactConflictError
	if errors.As(err, &conflict) {
		return conflict.CandidateID, true
	}
	var invalid *decide.InvalidCandidateError
	if errors.As(err, &invalid) {
		return invalid.CandidateID, true
	}
	return "", false
}

// provenance is that of a NOOP which no decider made. It is valid whatever the
// candidate lacks.
func provenance(
	in events.Event[events.CandidatesExtracted], c events.Candidate, why events.Reason, part, decidedBy string,
) events.Provenance {
	p := events.Provenance{
		ID:          events.HashID(in.ID, part, place(in.Data.Candidates, c.ID)),
		CandidateID: c.ID, SourceEpisodeIDs: c.SourceEpisodeIDs,
		PromotionTS: in.Time, RuleID: c.RuleID, Confidence: c.Confidence, Reason: why, DecidedBy: decidedBy,
	}
	if len(p.SourceEpisodeIDs) == 0 || slices.Contains(p.SourceEpisodeIDs, "") {
		p.SourceEpisodeIDs, p.RequestID = nil, in.ID
	}
	if p.RuleID == "" {
		p.RuleID = "unknown"
	}
	if !(p.Confidence >= 0 && p.Confidence <= 1) {
		p.Confidence = 0
	}
	return p
}

// place tells the candidates of a batch, and those from the buffer, apart.
func place(candidates []events.Candidate, id string) string {
	i := slices.IndexFunc(candidates, func(c events.Candidate) bool { return c.ID == id })
	if i < 0 {
		return id
	}
	return strconv.Itoa(i)
}
