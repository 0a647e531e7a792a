package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// maxUndo bounds the facts and held candidates of one undo, which are in memory
// meanwhile.
const maxUndo = 20_000

// scopesApart bounds the fact scopes whose effects are read one by one. Where more
// are concerned, the effects of all are read once.
const scopesApart = 16

// includeAll stands for the facts of all conflicts.
const includeAll = "all"

// criteria say which deltas an undo takes back. Those that are set must all be met.
type criteria struct {
	api.Undo
	sel   scope.Selector
	since time.Time
	// episodes are those of the message, the session and the source node; nil where
	// none of them is named.
	episodes map[episodeKey]bool
	run      *oneRun
	// alone chooses a delta only if all of its sources are among the episodes.
	alone bool
	// until, unless it is zero, leaves out messages that arrived later.
	until time.Time
}

type episodeKey struct {
	owner scope.Scope
	id    string
}

// oneRun is a run of a rule: its effects have the scope, the rule and the time of
// decision in common.
type oneRun struct {
	owner   scope.Scope
	rule    string
	decided time.Time
}

func (s *Service) criteria(ctx context.Context, project string, body api.Undo) (criteria, error) {
	c := criteria{Undo: body, sel: scope.Selector{Project: project, User: body.User, Agent: body.Agent}}
	if body.Request == "" && body.Episode == "" && body.RuleRun == 0 && body.SourceNode == "" && body.Session == "" && body.Rule == "" && body.Since == "" {
		return c, invalid("request", "name a request, an episode, a rule_run, a source_node, a session, a rule or a time since")
	}
	c.sel.All = c.sel.User == nil && c.sel.Agent == nil
	var err error
	if err = c.sel.Validate(); err != nil {
		return c, err
	}
	if c.sel, err = narrowed(ctx, c.sel); err != nil {
		return c, err
	}
	if c.since, err = instant("since", body.Since); err != nil {
		return c, err
	}
	if body.RuleRun > 0 {
		if c.run, err = s.runAt(ctx, c.sel, body.RuleRun); err != nil {
			return c, err
		}
	}
	if body.Session != "" || body.SourceNode != "" {
		c.episodes, err = s.episodesOf(ctx, c)
	}
	return c, err
}

// runAt finds a run of a rule by the sequence of one of its effects.
func (s *Service) runAt(ctx context.Context, sel scope.Selector, sequence uint64) (*oneRun, error) {
	all, err := s.effects(ctx, replay{sel: sel, after: sequence - 1, until: sequence}, false)
	if err != nil {
		return nil, err
	}
	for e, err := range all(ctx) {
		if err != nil {
			return nil, err
		}
		for _, r := range audit.Records(e) {
			return &oneRun{r.Scope, r.Rule, r.DecidedAt}, nil
		}
	}
	return nil, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "rule_run", "no effect of that sequence changed anything")
}

// episodesOf reads the ids of the messages of a session and a source node, none of which
// is missed because the store lost rows.
func (s *Service) episodesOf(ctx context.Context, c criteria) (map[episodeKey]bool, error) {
	return store.ReadWhole(ctx, s.deps.Store, func() (map[episodeKey]bool, error) { return s.findEpisodes(ctx, c) })
}

func (s *Service) findEpisodes(ctx context.Context, c criteria) (map[episodeKey]bool, error) {
	sel, q := c.sel, c.of(store.RecentQuery{Limit: maxLimit}, s)
	if c.Session != "" {
		sel.Session, sel.All = &c.Session, false
	}
	out := map[episodeKey]bool{}
	for {
		page, err := s.deps.Store.Recent(ctx, sel, q)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if c.until.IsZero() || !e.ArrivedAt.After(c.until) {
				out[episodeKey{e.Scope.Fact(), e.ID}] = true
			}
			cursor := store.CursorOf(e)
			q.Cursor = &cursor
		}
		if len(page) < maxLimit {
			return out, nil
		}
	}
}

// chooses reports whether an undo takes a delta back.
func (c criteria) chooses(r audit.Record) bool {
	switch {
	case r.AppliedAt.Before(c.since):
		return false
	case c.Request != "" && !belongsTo(r.RequestID, c.Request) && !belongsTo(r.CorrelationID, c.Request):
		return false
	case c.Rule != "" && r.Rule != c.Rule && r.RuleID != c.Rule:
		return false
	case c.run != nil && (r.Scope != c.run.owner || r.Rule != c.run.rule || !r.DecidedAt.Equal(c.run.decided)):
		return false
	case c.Episode == "" && c.episodes == nil:
		return true
	case len(r.Sources) == 0: // a caller stated it
		return c.Episode == "" && c.SourceNode == "" && bringsSession(r, c.Session)
	}
	from := func(id string) bool {
		return (c.Episode == "" || id == c.Episode) && (c.episodes == nil || c.episodes[episodeKey{r.Scope, id}])
	}
	if c.alone {
		return !slices.ContainsFunc(r.Sources, func(id string) bool { return !from(id) })
	}
	return slices.ContainsFunc(r.Sources, from)
}

// bringsSession reports whether a delta made a session one of its fact's. A later delta
// without sources, such as a correction, keeps the sessions of the fact and is none of
// theirs.
func bringsSession(r audit.Record, session string) bool {
	has := func(f *events.Fact) bool { return f != nil && slices.Contains(f.SessionIDs, session) }
	return has(r.After) && !has(r.Before)
}

// undoing plans an undo. It reads the effects of the selection twice: for the places
// of the chosen deltas, and for what became of their facts.
func (s *Service) undoing(ctx context.Context, c criteria) (undoPlan, error) {
	chosen, err := s.chosen(ctx, c)
	if err != nil {
		return undoPlan{}, err
	}
	plan := undoPlan{steps: map[scope.Scope][]events.UndoStep{}, conflicts: map[scope.Scope][]undoConflict{}}
	for owner, in := range chosen {
		plan.about, plan.marks = append(plan.about, owner), plan.marks || in.marks
	}
	slices.SortFunc(plan.about, func(a, b scope.Scope) int { return strings.Compare(a.Key(), b.Key()) })
	switch {
	case len(plan.about) == 0:
		return plan, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "", "no delta of the audit log matches")
	case c.Episode != "" && len(plan.about) > 1:
		return plan, invalid("episode", "%d users and agents have a message of that id; name the user or the agent", len(plan.about))
	}
	if err := s.follow(ctx, c.sel, chosen); err != nil {
		return plan, err
	}
	include := func(id string) bool { return slices.Contains(c.Include, id) || slices.Contains(c.Include, includeAll) }
	for _, owner := range plan.about {
		steps, conflicts := chosen[owner].undo.Steps(include)
		for _, conflict := range conflicts {
			plan.conflicts[owner] = append(plan.conflicts[owner], undoConflict{conflict, "later deltas touched the fact"})
		}
		if err := s.besideRivals(ctx, &plan, owner, steps, include); err != nil {
			return plan, err
		}
		if len(plan.steps[owner]) > 0 {
			plan.scopes = append(plan.scopes, owner)
		}
	}
	return plan, nil
}

// chosenIn is what an undo takes back in one fact scope.
type chosenIn struct {
	places map[memory.Place]bool
	facts  map[string]bool
	undo   *memory.Undo
	marks  bool // some of them are marks of a quarantine
}

func (s *Service) chosen(ctx context.Context, c criteria) (map[scope.Scope]*chosenIn, error) {
	all, err := s.effects(ctx, replay{sel: c.sel, from: c.since}, false)
	if err != nil {
		return nil, err
	}
	out, n := map[scope.Scope]*chosenIn{}, 0
	for e, err := range all(ctx) {
		if err != nil {
			return nil, err
		}
		for _, r := range audit.Records(e) {
			if !c.chooses(r) {
				continue
			}
			if n++; n > maxUndo {
				return nil, invalid("", "more than %d deltas match; name a user, an agent or a later time since", maxUndo)
			}
			in := out[e.Scope]
			if in == nil {
				in = &chosenIn{places: map[memory.Place]bool{}, facts: map[string]bool{}}
				in.undo = memory.NewUndo(in.places, in.facts)
				out[e.Scope] = in
			}
			in.marks = in.marks || r.Kind == events.DeltaAdd && strings.HasPrefix(r.CandidateID, markPrefix)
			in.places[memory.Place{Revision: r.Revision, Index: r.Index}] = true
			if r.FactID != "" {
				in.facts[r.FactID] = true
			}
		}
	}
	return out, nil
}

// follow gives each undo the effects of its fact scope.
func (s *Service) follow(ctx context.Context, sel scope.Selector, chosen map[scope.Scope]*chosenIn) error {
	reads := []scope.Selector{sel}
	if len(chosen) <= scopesApart {
		reads = nil
		for owner := range maps.Keys(chosen) {
			reads = append(reads, scope.Exactly(owner))
		}
	}
	for _, sel := range reads {
		all, err := s.effects(ctx, replay{sel: sel}, false)
		if err != nil {
			return err
		}
		for e, err := range all(ctx) {
			if err != nil {
				return err
			}
			if in := chosen[e.Scope]; in != nil {
				in.undo.Read(e.Data)
			}
		}
	}
	return nil
}

// besideRivals adds the steps of a scope to a plan. Where only one value holds at a
// time and another fact has it now, bringing the former back is a conflict, or
// closes the other.
func (s *Service) besideRivals(
	ctx context.Context, plan *undoPlan, owner scope.Scope, steps []events.UndoStep, include func(string) bool,
) error {
	ends := map[string]bool{}
	for _, step := range steps {
		ends[step.FactID] = step.Restore == nil || step.Restore.ValidUntil != nil
	}
	for _, step := range steps {
		var rivals []store.Fact
		if f := step.Restore; step.RestoresOnly() {
			versions, err := store.ReadWhole(ctx, s.deps.Store, func() ([]store.Fact, error) {
				return s.deps.Store.FactsByPredicate(ctx, owner, f.Subject, f.Predicate)
			})
			if err != nil {
				return err
			}
			rivals = slices.DeleteFunc(versions, func(r store.Fact) bool {
				return r.ID == f.ID || r.Kind != f.Kind || r.ValidUntil != nil || r.ArchivedAt != nil || ends[r.ID]
			})
		}
		if len(rivals) > 0 && !include(step.FactID) {
			why := fmt.Sprintf("fact %s holds in its place: %s", rivals[0].ID, lex.Clip(rivals[0].Text))
			plan.conflicts[owner] = append(plan.conflicts[owner], undoConflict{memory.UndoConflict{Fact: *step.Restore}, why})
			continue
		}
		for _, r := range rivals {
			step.Replaces = append(step.Replaces, r.ID)
		}
		plan.steps[owner] = append(plan.steps[owner], step)
	}
	// Steps that close facts come first: a restored fact may replace one of them, and its
	// step may be part of a later command.
	slices.SortStableFunc(plan.steps[owner], func(a, b events.UndoStep) int {
		return cmp.Compare(order(a), order(b))
	})
	return nil
}

// order is 1 for a step after which its fact holds where only one may, else 0.
func order(step events.UndoStep) int {
	if step.RestoresOnly() {
		return 1
	}
	return 0
}
