package query

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/auth"
	"palimpsest/internal/lex"
	"palimpsest/internal/retrieval/timex"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// ProjectParam is the tenant a request concerns.
type ProjectParam struct {
	Project string `query:"project" doc:"The tenant; the configured one unless given."`
}

// Resolve implements [huma.Resolver]: the project is that of the caller's key. A
// request that names another one is refused.
func (p *ProjectParam) Resolve(ctx huma.Context) []error {
	own := auth.Of(ctx.Context()).Project
	switch {
	case own == "":
	case p.Project == "":
		p.Project = own
	case p.Project != own:
		return []error{api.NewProblem(http.StatusForbidden, api.CodeForbidden, "project", "the key is for another project")}
	}
	return nil
}

func (s *Service) project(p ProjectParam) (string, error) {
	if p.Project == "" {
		return s.config.Project, nil
	}
	return p.Project, scope.Selector{Project: p.Project}.Validate()
}

// LevelParams are the levels of a scope as query parameters. Left out and empty
// differ, which the router's own parameters cannot tell.
type LevelParams struct {
	ProjectParam
	User    string `query:"user" doc:"Left out: any user. Empty: only what names no user."`
	Agent   string `query:"agent" doc:"Left out: any agent. Empty: only what names no agent."`
	Session string `query:"session" doc:"Left out: any session. Empty: only what names no session."`

	given  url.Values
	caller auth.Caller
}

// Resolve implements [huma.Resolver]: it remembers which parameters were given, and
// its caller.
func (p *LevelParams) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	p.given = u.Query()
	p.caller = auth.Of(ctx.Context())
	return p.ProjectParam.Resolve(ctx)
}

// SelectorParams is a widening read as query parameters.
type SelectorParams struct {
	LevelParams
	All bool `query:"all" doc:"Read the whole project, naming no level."`
}

// selector returns the levels that p names.
func (s *Service) selector(p LevelParams) (scope.Selector, error) {
	project, err := s.project(p.ProjectParam)
	if err != nil {
		return scope.Selector{}, err
	}
	sel := scope.Selector{Project: project, User: p.level("user"), Agent: p.level("agent"), Session: p.level("session")}
	return sel, sel.Validate()
}

// reads returns what a read asks for. It names a level or the whole project, and
// not both.
func (s *Service) reads(p SelectorParams) (scope.Selector, error) {
	sel, err := s.selector(p.LevelParams)
	sel.All = p.All
	if err != nil {
		return sel, err
	}
	if err := checkWidth(sel); err != nil {
		return sel, err
	}
	return narrowedFor(p.caller, sel)
}

func checkWidth(sel scope.Selector) error {
	named := sel.User != nil || sel.Agent != nil || sel.Session != nil
	switch {
	case !named && !sel.All:
		return api.NewProblem(http.StatusBadRequest, api.CodeScopeMissing, "user",
			"name a user, an agent or a session; all=true reads the whole project")
	case named && sel.All:
		return invalid("all", "reads the whole project; leave it out beside a user, an agent or a session")
	}
	return nil
}

// factSelector is for what exists per fact scope. Where a user is named, such a
// scope has no session: naming one would match nothing, and read as if there
// were nothing.
func (s *Service) factSelector(p SelectorParams) (scope.Selector, error) {
	sel, err := s.reads(p)
	if err == nil && sel.Session != nil && *sel.Session != "" && sel.User != nil && *sel.User != "" {
		return sel, invalid("session", "what a user says is accounted for across sessions; leave the session out")
	}
	return sel, err
}

// level is one level of the selector, nil where it was left out.
func (p *LevelParams) level(name string) *string {
	values, ok := p.given[name]
	if !ok {
		return nil
	}
	return &values[0]
}

// instant reads a time parameter; empty is the zero time.
func instant(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var i api.Instant
	if err := i.UnmarshalText([]byte(text)); err != nil {
		return time.Time{}, invalid(name, "%q is neither RFC 3339 nor YYYY-MM-DD", lex.Clip(text))
	}
	return i.Time, nil
}

// bound reads an instant, or the name of a time, which means its first moment.
func bound(name, text string, now time.Time) (time.Time, error) {
	if i, err := instant(name, text); err == nil {
		return i, nil
	}
	if from, ok := timex.Start(text, now); ok {
		return from, nil
	}
	return time.Time{}, invalid(name, "%q is none of RFC 3339, YYYY-MM-DD, an ISO week, last_week, last_month, yesterday, today", lex.Clip(text))
}

// maxLimit is the most rows that a page may have.
const maxLimit = 1000

func limit(n, otherwise int) (int, error) {
	switch {
	case n == 0:
		return otherwise, nil
	case n < 1 || n > maxLimit:
		return 0, invalid("limit", "%d is outside 1 to %d", n, maxLimit)
	}
	return n, nil
}

// oneMore asks for a row beyond the page, which tells whether another follows.
// The store has no more than maxLimit to give.
func oneMore(n int) int { return min(n+1, maxLimit) }

// page cuts what [oneMore] brought to n rows, and says whether more follow; of
// a full page of maxLimit rows it cannot know, and says yes.
func page[T any](rows []T, n int) ([]T, bool) {
	if len(rows) > n {
		return rows[:n], true
	}
	return rows, n == maxLimit && len(rows) == n
}

// seal and open turn a place in a listing into an opaque cursor and back.
func seal(place any) string {
	text, err := json.Marshal(place)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func open[T any](field, token string) (*T, error) {
	if token == "" {
		return nil, nil //nolint:nilnil // no cursor is no error
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	var place T
	if err == nil {
		read := json.NewDecoder(bytes.NewReader(text))
		read.DisallowUnknownFields() // the token of another operation
		err = read.Decode(&place)
	}
	if err != nil {
		return nil, invalid(field, "is not a token of ours")
	}
	return &place, nil
}
