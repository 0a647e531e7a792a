package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// shortLength is the length of a short id, in hex digits. The first digits of an id
// are a clock, and much the same for facts of one hour; the last are a hash.
const shortLength = 8

// mostNamed bounds the candidates that an error names.
const mostNamed = 5

// isShort reports whether an id may be the end of another.
func isShort(id string) bool {
	return len(id) == shortLength && strings.Trim(id, "0123456789abcdefABCDEF") == ""
}

// candidates are the ids that a short id may stand for.
type candidates struct {
	short string // in lower case
	ids   []string
	texts []string
}

func (c *candidates) add(id, text string) {
	if strings.HasSuffix(id, c.short) && !slices.Contains(c.ids, id) { // two scopes may hold the same
		c.ids, c.texts = append(c.ids, id), append(c.texts, text)
	}
}

// only returns the one candidate. Several are an error that names them.
func (c *candidates) only() (string, error) {
	switch len(c.ids) {
	case 0:
		return "", store.ErrNotFound
	case 1:
		return c.ids[0], nil
	}
	var named strings.Builder
	for i, id := range c.ids[:min(len(c.ids), mostNamed)] {
		_, _ = fmt.Fprintf(&named, ", %s (%s)", id, lex.Clip(c.texts[i]))
	}
	if len(c.ids) > mostNamed {
		named.WriteString(", …")
	}
	return "", invalid("id", "%s is the end of %d ids: %s", c.short, len(c.ids), named.String()[2:])
}

// wholeFactID returns the id of the fact that a short id stands for, and any other
// id unchanged. It reads every fact of the project.
func (s *Service) wholeFactID(ctx context.Context, project, id string) (string, error) {
	if !isShort(id) {
		return id, nil
	}
	var owners []scope.Scope
	if err := s.eachOwner(ctx, scope.Selector{Project: project}, func(owner scope.Scope) { owners = append(owners, owner) }); err != nil {
		return "", err
	}
	found := candidates{short: strings.ToLower(id)}
	for _, o := range owners { // one by one: a page of them all reads a page of each
		sel := scope.Selector{Project: project, User: &o.User, Agent: &o.Agent, Session: &o.Session}
		q := store.FactQuery{IncludeArchived: true, Limit: maxLimit}
		for more := true; more; {
			facts, err := s.deps.Store.Facts(ctx, sel, q)
			if err != nil {
				return "", err
			}
			for _, f := range facts {
				found.add(f.ID, f.Text)
				q.Cursor = &store.FactCursor{CreatedAt: f.CreatedAt, ID: f.ID}
			}
			more = len(facts) == maxLimit
		}
	}
	return found.only()
}

// wholeHoldID is wholeFactID for held candidates.
func (s *Service) wholeHoldID(ctx context.Context, project, id string) (string, error) {
	if !isShort(id) {
		return id, nil
	}
	found := candidates{short: strings.ToLower(id)}
	q := store.HoldQuery{Limit: maxLimit}
	for more := true; more; {
		holds, err := s.deps.Store.ListHolds(ctx, scope.Selector{Project: project}, q)
		if err != nil {
			return "", err
		}
		for _, h := range holds {
			found.add(h.ID, h.Candidate.Text)
			cursor := store.HoldCursorOf(h)
			q.Cursor = &cursor
		}
		more = len(holds) == maxLimit
	}
	return found.only()
}
