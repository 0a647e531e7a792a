package query

import (
	"context"
	"net/http"

	"palimpsest/internal/auth"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// The guards stand between the handlers and what these read and write: a call
// reaches a backend only with a scope that the caller of its context may reach.
// They embed no interface, so that a method that is added to one does not compile
// without a guard.

// errElsewhere answers for data of another project or user, which a caller must not
// tell from data that never was.
var errElsewhere = store.ErrNotFound

// reached checks one scope.
func reached(ctx context.Context, s scope.Scope) error {
	if c := auth.Of(ctx); !c.Reaches(s.Project) || !c.ReachesUser(s.User) {
		return errElsewhere
	}
	return nil
}

// inProject checks a project.
func inProject(ctx context.Context, project string) error {
	if !auth.Of(ctx).Reaches(project) {
		return errElsewhere
	}
	return nil
}

// noUser answers for a user whom the caller names and does not reach.
func noUser() error {
	return api.NewProblem(http.StatusNotFound, api.CodeNotFound, "user", "there is no such user here")
}

// narrowed returns the part of a selector that the caller reaches. A caller with
// one user reads that user's data where the selector names none; with several
// users it has to name one.
func narrowed(ctx context.Context, sel scope.Selector) (scope.Selector, error) {
	return narrowedFor(auth.Of(ctx), sel)
}

func narrowedFor(c auth.Caller, sel scope.Selector) (scope.Selector, error) {
	if !c.Reaches(sel.Project) {
		return sel, errElsewhere
	}
	if len(c.Users) == 0 {
		return sel, nil
	}
	switch {
	case sel.User != nil && c.ReachesUser(*sel.User):
		return sel, nil
	case sel.User != nil:
		return sel, noUser()
	case len(c.Users) > 1:
		return sel, api.NewProblem(http.StatusForbidden, api.CodeForbidden, "user", "the key is for %d users; name one of them", len(c.Users))
	}
	sel.User, sel.All = &c.Users[0], false
	return sel, nil
}

// kept returns the rows whose scope the caller reaches.
func kept[T any](ctx context.Context, rows []T, of func(T) scope.Scope) []T {
	out := rows[:0:0]
	for _, row := range rows {
		if reached(ctx, of(row)) == nil {
			out = append(out, row)
		}
	}
	return out
}
