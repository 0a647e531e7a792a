package query

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// deletesAtOnce bounds the commands of one delete that are under way.
const deletesAtOnce = 16

type deleteScopeInput struct {
	LevelParams
	KeyHeader
	Erase bool `query:"erase" doc:"Remove everything of the user from every place for good, history too. The answer's correlation_id is that of /v1/erasures/{id}."`
}

// deleteScope erases a user, or closes the facts of every fact scope that the levels match, by one
// command for each. Its answer has their count.
func (s *Service) deleteScope(ctx context.Context, in *deleteScopeInput) (*written, error) {
	sel, err := s.deleted(in.LevelParams)
	if err != nil {
		return nil, err
	}
	if in.Erase {
		return s.erase(ctx, sel, in.Key)
	}
	s.incognito.forget(sel)
	return s.once(ctx, sel.Project, "DELETE /v1/scopes", in.Key, []byte(sel.String()), func(a attempt) (*written, error) {
		owners, err := s.ownersOf(ctx, sel)
		if err != nil {
			return nil, err
		}
		return s.deleteAll(ctx, a, owners, deref(sel.Session))
	})
}

// deleted returns the levels of a delete. At least one of them must not be empty.
func (s *Service) deleted(p LevelParams) (scope.Selector, error) {
	sel, err := s.selector(p)
	switch {
	case err != nil:
		return sel, err
	case deref(sel.User) == "" && deref(sel.Agent) == "" && deref(sel.Session) == "":
		return sel, api.NewProblem(http.StatusBadRequest, api.CodeScopeMissing, "user", "name a user, an agent or a session")
	case sel.Session != nil && *sel.Session == "" && (sel.User == nil || *sel.User != ""):
		return sel, invalid("session", "the facts of a user belong to no session; name one, or leave the session out")
	}
	return narrowedFor(p.caller, sel)
}

func deref(id *string) string {
	if id == nil {
		return ""
	}
	return *id
}

// ownersOf returns the fact scopes that a delete concerns. A session has facts in
// those of users, and where no user is named one of its own. It returns
// [store.ErrLost] rather than miss one whose rows are put back later.
func (s *Service) ownersOf(ctx context.Context, sel scope.Selector) ([]scope.Scope, error) {
	return store.ReadWhole(ctx, s.deps.Store, func() ([]scope.Scope, error) { return s.findOwners(ctx, sel) })
}

func (s *Service) findOwners(ctx context.Context, sel scope.Selector) ([]scope.Scope, error) {
	var owners []scope.Scope
	add := func(owner scope.Scope) { owners = append(owners, owner) }
	if deref(sel.Session) == "" {
		return owners, s.eachOwner(ctx, sel, add)
	}
	session := *sel.Session
	if deref(sel.User) == "" {
		own, none := sel, ""
		own.User = &none
		if err := s.eachOwner(ctx, own, add); err != nil {
			return nil, err
		}
	}
	sel.Session = nil
	if err := s.eachContribution(ctx, sel, session, add); err != nil {
		return nil, err
	}
	slices.SortFunc(owners, func(a, b scope.Scope) int { return strings.Compare(a.Key(), b.Key()) })
	return slices.Compact(owners), nil
}

func (s *Service) eachOwner(ctx context.Context, sel scope.Selector, add func(scope.Scope)) error {
	return s.deps.Store.Scopes(ctx, sel, func(owner scope.Scope) bool {
		add(owner)
		return true
	})
}

// eachContribution adds the scope of each fact and held candidate of a user that
// a session contributed to, some of them several times.
func (s *Service) eachContribution(ctx context.Context, sel scope.Selector, session string, add func(scope.Scope)) error {
	q := store.FactQuery{Session: &session, IncludeArchived: true, Limit: maxLimit}
	for more := true; more; {
		facts, err := s.deps.Store.Facts(ctx, sel, q)
		if err != nil {
			return err
		}
		for _, f := range facts {
			if f.Scope.User != "" {
				add(f.Scope)
			}
			q.Cursor = &store.FactCursor{CreatedAt: f.CreatedAt, ID: f.ID}
		}
		more = len(facts) == maxLimit
	}
	h := store.HoldQuery{Limit: maxLimit}
	for more := true; more; {
		holds, err := s.deps.Store.ListHolds(ctx, sel, h)
		if err != nil {
			return err
		}
		for _, held := range holds {
			if held.Scope.User != "" && slices.Contains(held.Candidate.SessionIDs, session) {
				add(held.Scope)
			}
			cursor := store.HoldCursorOf(held)
			h.Cursor = &cursor
		}
		more = len(holds) == maxLimit
	}
	return nil
}

// deleteAll runs a command for each owner and adds up what they closed. Past the
// deadline the commands that are left are published, and not waited for. Each has
// an id of its own, so that it is not taken for a repetition of another.
func (s *Service) deleteAll(ctx context.Context, a attempt, owners []scope.Scope, session string) (*written, error) {
	deadline := time.Now().Add(s.config.Wait)
	answers := make([]*written, len(owners))
	var group errgroup.Group
	group.SetLimit(deletesAtOnce)
	for i, owner := range owners {
		one := attempt{correlation: derived(a.correlation, owner.Tokens()), again: a.again, deadline: deadline}
		group.Go(func() (err error) {
			answers[i], err = s.command(ctx, one, events.CommandRequested{
				Header:     events.Header{Scope: owner},
				CommandRef: events.CommandRef{RequestID: one.correlation, Op: events.OpDeleteScope},
				Session:    session,
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	closed := 0
	out := &written{Status: http.StatusOK, Body: &api.Written{CorrelationID: a.correlation, Status: statusDone, Closed: &closed}}
	for _, answer := range answers {
		if answer.pending {
			body := &api.Written{CorrelationID: a.correlation, Status: statusAccepted, At: answer.Body.At}
			return &written{Status: http.StatusAccepted, Body: body, pending: true}, nil
		}
		closed += *answer.Body.Closed
		out.Body.Results = append(out.Body.Results, answer.Body.Results...)
		out.Body.At = answer.Body.At
	}
	return out, nil
}
