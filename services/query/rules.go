package query

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/poll"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Rehearse extracts and decides as a tick would, and publishes nothing.
type Rehearse func(ctx context.Context, tick events.TickIssued) (events.CandidatesExtracted, events.DeltasDecided, error)

func (s *Service) ruleRoutes(a huma.API) {
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{"rules"}}
	}
	register(s, a, op("list-rules", http.MethodGet, "/v1/rules", "List the consolidation rules"), s.listRules)
	registerBody[api.RunRule](s, a, op("run-rule", http.MethodPost, "/v1/rules/{id}/run", "Run a rule in a scope now"), s.runRule)
	registerBody[api.RunRule](s, a, op("rehearse-rule", http.MethodPost, "/v1/rules/{id}/dry-run",
		"Decide as a run would, and apply nothing"), s.rehearseRule)
}

type ruleList struct{ Body api.RuleList }

func (s *Service) listRules(context.Context, *struct{}) (*ruleList, error) {
	out := &ruleList{api.RuleList{Rules: []api.Rule{}}}
	for _, r := range s.deps.Rules {
		out.Body.Rules = append(out.Body.Rules, viewRule(r))
	}
	return out, nil
}

func viewRule(r memory.Rule) api.Rule {
	out := api.Rule{
		ID: r.ID, Enabled: r.Enabled, Every: r.Cadence.Every, Cron: r.Cadence.Cron, SessionEnd: r.Cadence.SessionEnd, Request: r.Cadence.Request, When: r.Where,
		Extractor: r.Extractor, Decider: r.Decider, Prompt: r.Prompt, Decision: r.DecisionPrompt, Streaming: r.Streaming, CommitOnly: r.CommitOnly, Steps: r.Steps,
	}
	if r.Cadence.Location != nil {
		out.TZ = r.Cadence.Location.String()
	}
	for _, k := range r.Then {
		out.Then = append(out.Then, string(k))
	}
	return out
}

type ruleInput struct {
	ProjectParam
	KeyHeader
	Unread
	ID string `path:"id" doc:"Identifier of the rule."`
}

type ruleRun = reply[api.RuleRun]

// runRule asks the scheduler for the tick, which it issues once the project has a slot.
// A tick of maintenance needs no slot. It may overlap with one of the scheduler: neither
// repeats work that the other has done.
func (s *Service) runRule(ctx context.Context, in *ruleInput) (*ruleRun, error) {
	body, tick, run, err := s.ruleTick(ctx, in)
	if err != nil {
		return nil, err
	}
	most, err := s.patience(body.Timeout)
	if err != nil {
		return nil, err
	}
	project := body.In(in.Project).Project
	if project == "" {
		project = s.config.Project
	}
	return keep(ctx, s, project, "POST /v1/rules/run "+in.ID, in.Key, in.RawBody, func(a attempt) (*ruleRun, error) {
		if run.Status == statusIdle {
			return &ruleRun{Status: http.StatusOK, Body: &run}, nil
		}
		if err := s.request(ctx, a, tick); err != nil {
			return nil, s.unpublished(ctx, "", err)
		}
		if !body.Wait || !s.reached(ctx, tick.TickIssued, most) {
			return &ruleRun{Status: http.StatusAccepted, Body: &run}, nil
		}
		run.Status = statusDone
		return &ruleRun{Status: http.StatusOK, Body: &run}, nil
	})
}

func (s *Service) request(ctx context.Context, a attempt, tick asked) error {
	if tick.Upkeep != nil {
		_, err := s.deps.Publisher.Publish(ctx, events.Meta{ID: tick.id(), Source: source}, tick.TickIssued)
		return err
	}
	wanted := events.EpisodeStored{Header: tick.Header, LastOrdinal: tick.Range.To, StoredAt: s.deps.Now(), Run: tick.Rule}
	id := events.HashID(string(wanted.Kind()), tick.Rule, a.correlation)
	_, err := s.deps.Publisher.Publish(ctx, events.Meta{ID: id, Source: source, CorrelationID: a.correlation}, wanted)
	return err
}

// statusIdle: there was nothing to do.
const statusIdle = "idle"

// asked is a tick that a caller asked for.
type asked struct{ events.TickIssued }

// id is that of every tick over the same, so that the stream takes one.
func (a asked) id() string {
	return events.HashID(append([]string{string(a.Kind())}, a.Identity()...)...)
}

// ruleTick reads what a caller asks for, and composes the tick.
func (s *Service) ruleTick(ctx context.Context, in *ruleInput) (body api.RunRule, tick asked, run api.RuleRun, err error) {
	if body, err = read[api.RunRule](in.RawBody); err != nil {
		return body, tick, run, err
	}
	project, err := s.project(in.ProjectParam)
	if err != nil {
		return body, tick, run, err
	}
	owner := body.In(project)
	if err := owner.Validate(); err != nil {
		return body, tick, run, err
	}
	r, ok := s.ruleOf(in.ID)
	if !ok {
		return body, tick, run, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "id", "no rule is called %q", lex.Clip(in.ID))
	}
	if r.Cadence.Request {
		return body, tick, run, invalid("id", "rule %s has no pending messages of its own; run the rule with every: 1", r.ID)
	}
	fact := owner.Fact()
	state, err := s.deps.Store.State(ctx, fact)
	if err != nil {
		return body, tick, run, err
	}
	if !r.Reads() {
		run, err := s.upkeepTick(ctx, r, fact, state.Incarnation, &tick)
		return body, tick, run, err
	}
	// What the run changes has a revision above that of now.
	at := token{Scope: fact.Tokens(), Revision: state.Revision, Rule: r.ID}
	span := events.Range{From: state.Watermarks[r.ID], To: max(state.LastOrdinal, state.Watermarks[r.ID])}
	run = api.RuleRun{Scope: api.ScopeOf(fact), Rule: r.ID, Status: statusAccepted, From: span.From, To: span.To}
	if span.Empty() {
		run.Status, run.At = statusIdle, seal(at)
		return body, tick, run, nil
	}
	if tick.TickIssued, err = s.compose(ctx, state, r, span); err != nil {
		return body, tick, run, err
	}
	run.To, run.Remaining = tick.Range.To, span.To-tick.Range.To
	run.More = run.Remaining > 0
	at.To = run.To
	run.At = seal(at)
	return body, tick, run, nil
}

// compose returns the tick that the scheduler would issue at the start of a range that
// is pending and not empty.
func (s *Service) compose(ctx context.Context, state memory.State, r memory.Rule, span events.Range) (events.TickIssued, error) {
	requested, ok := memory.Requested(s.deps.Rules)
	answering, _ := memory.Answering(s.deps.Rules)
	split := ok && r.ID == answering.ID
	span, err := memory.Fit(ctx, s.deps.Store.EpisodeRange, state.Scope, span, s.deps.Bounds, split)
	if err != nil {
		return events.TickIssued{}, err
	}
	var ends []events.SessionEnd
	if r.Cadence.SessionEnd {
		if ends, err = s.deps.Store.EndsAbove(ctx, state.Scope, span.From); err != nil {
			return events.TickIssued{}, err
		}
	}
	tick := memory.TickOf(state, r, span, memory.EndsIn(r, ends, span), events.CauseRequest)
	if !split {
		return tick, nil
	}
	first, err := s.deps.Store.EpisodeRange(ctx, state.Scope, events.Range{From: span.From, To: span.From + 1})
	if of := memory.AskedAt(first, span.From+1); of.Request {
		memory.HandOver(&tick, requested, of)
	}
	return tick, err
}

// upkeepTick composes the tick of the first step of a maintenance rule that has
// something due now.
func (s *Service) upkeepTick(ctx context.Context, r memory.Rule, fact scope.Scope, incarnation uint64, tick *asked) (api.RuleRun, error) {
	run := api.RuleRun{Scope: api.ScopeOf(fact), Rule: r.ID, Status: statusAccepted}
	now := s.deps.Now().Truncate(time.Microsecond)
	run.Status = statusIdle
	for _, step := range r.Steps {
		work, err := s.upkeepOf(ctx, step, fact, now)
		if err != nil {
			return run, err
		}
		if len(work.FactIDs) == 0 {
			continue
		}
		if run.Status == statusAccepted { // a step before it goes first
			run.More = true
			break
		}
		run.Status, run.More = statusAccepted, len(work.FactIDs) == mostOf(step)
		if run.Facts = len(work.FactIDs); step == events.StepEnrich {
			run.Facts, run.Entities = 0, len(work.FactIDs)
		}
		tick.TickIssued = events.TickIssued{Batch: events.Batch{
			Header: events.Header{Scope: fact, Incarnation: incarnation}, Rule: r.ID, Class: memory.UpkeepClass(r, step), Cause: events.CauseMaintenance, Upkeep: &work,
		}}
	}
	return run, nil
}

// mostOf bounds a tick of a step of maintenance.
func mostOf(step string) int {
	if step == events.StepEnrich {
		return events.MaxUpkeepEntities
	}
	return events.MaxUpkeepFacts
}

// upkeepOf reads what is due for a step of maintenance.
func (s *Service) upkeepOf(ctx context.Context, step string, fact scope.Scope, now time.Time) (events.Upkeep, error) {
	read := s.deps.Store.Decayed
	if step == events.StepEnrich {
		read = s.deps.Store.Undescribed
	}
	work := events.Upkeep{Step: step, At: now}
	due, err := read(ctx, store.DecayQuery{Scope: &fact, At: now, Limit: mostOf(step)})
	for _, d := range due {
		work.FactIDs = append(work.FactIDs, d.ID)
	}
	return work, err
}

func (s *Service) ruleOf(id string) (memory.Rule, bool) {
	for _, r := range s.deps.Rules {
		if r.ID == id {
			return r, true
		}
	}
	return memory.Rule{}, false
}

// reached waits until the watermark of a tick's rule is at its end, or none of its
// facts and entities is due.
func (s *Service) reached(ctx context.Context, tick events.TickIssued, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return nil == poll.Until(ctx, lookAgain, func() (bool, error) {
		done, err := s.done(ctx, tick)
		return done && err == nil, nil
	})
}

func (s *Service) done(ctx context.Context, tick events.TickIssued) (bool, error) {
	if tick.Upkeep == nil {
		state, err := s.deps.Store.State(ctx, tick.Scope)
		return state.Watermarks[tick.Rule] >= tick.Range.To, err
	}
	if tick.Upkeep.Step == events.StepEnrich {
		found, err := s.deps.Store.EntitiesByID(ctx, tick.Scope, tick.Upkeep.FactIDs)
		return !slices.ContainsFunc(found, func(e events.Entity) bool { _, due := memory.DescribeAt(e); return due }), err
	}
	found, err := s.deps.Store.FactsByID(ctx, tick.Scope, tick.Upkeep.FactIDs)
	return !slices.ContainsFunc(found, func(f store.Fact) bool { return f.DueBy(tick.Upkeep.At) }), err
}

type rehearsal struct{ Body api.Rehearsal }

func (s *Service) rehearseRule(ctx context.Context, in *ruleInput) (*rehearsal, error) {
	_, tick, run, err := s.ruleTick(ctx, in)
	if err != nil {
		return nil, err
	}
	run.At = "" // nothing is written
	out := &rehearsal{api.Rehearsal{RuleRun: run, Deltas: []api.Rehearsed{}}}
	if run.Status == statusIdle {
		return out, nil
	}
	found, decided, err := s.deps.Rehearse(ctx, tick.TickIssued)
	if err != nil {
		return nil, err
	}
	out.Body.Status, out.Body.Candidates = statusDone, len(found.Candidates)
	for _, d := range decided.Deltas {
		view := viewRehearsed(d)
		for _, c := range decided.Candidates {
			if c.ID == d.Provenance().CandidateID && view.Memory == "" {
				view.Memory = c.Text
			}
		}
		out.Body.Deltas = append(out.Body.Deltas, view)
	}
	return out, nil
}

func viewRehearsed(d events.Delta) api.Rehearsed {
	p := d.Provenance()
	out := api.Rehearsed{Reason: string(p.Reason), Confidence: p.Confidence, Sources: p.SourceEpisodeIDs, DecidedBy: p.DecidedBy}
	show := func(event events.Change, payload events.FactPayload) {
		out.Event = string(event)
		switch {
		case payload.Fact != nil:
			out.ID, out.Memory = payload.Fact.ID, payload.Fact.Text
		case payload.Hold != nil:
			out.ID, out.Memory = payload.Hold.ID, payload.Hold.Candidate.Text
		case payload.Entity != nil:
			out.ID, out.Memory = payload.Entity.ID, payload.Entity.Summary
		}
	}
	switch d := d.(type) {
	case events.Add:
		show(events.ChangeAdd, d.Payload())
	case events.Update:
		show(events.ChangeUpdate, d.Payload())
		out.Replaces = d.Replaces()
	case events.Delete:
		out.Event, out.Replaces = string(events.ChangeDelete), d.Replaces()
	case events.Noop:
		out.Event, out.ID = string(events.ChangeNone), d.About()
	}
	return out
}
