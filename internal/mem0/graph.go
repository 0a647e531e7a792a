package mem0

import (
	"cmp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// Relationship is a relation of the graph in the compat family.
type Relationship struct {
	Source       string `json:"source"`
	Relationship string `json:"relationship"`
	Target       string `json:"target"`
}

// graphEntities lists the people, places and things that the memories of a scope
// mention.
func graphEntities(c *call) (any, error) {
	sel, b, err := c.graphScope()
	if err != nil {
		return nil, err
	}
	out, cursor := []api.Entity{}, ""
	for {
		page, err := c.Entities(c.Context(), sel, maxLimit, cursor)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Entities...)
		if cursor = page.Next; cursor == "" || b.Limit > 0 && len(out) >= b.Limit {
			break
		}
	}
	if b.Limit > 0 {
		out = out[:min(b.Limit, len(out))]
	}
	return map[string]any{"results": out}, nil
}

// relationships are the names of predicates in this family, where they differ. The
// target of an edge of work is an organization.
var relationships = map[string]string{"work": "works_at"}

// graphRelations lists the relations of one of them.
func graphRelations(c *call) (any, error) {
	sel, _, err := c.graphScope()
	if err != nil {
		return nil, err
	}
	got, err := c.Relations(c.Context(), sel, c.PathValue("name"), 0)
	if err != nil {
		return nil, err
	}
	out := []Relationship{}
	for _, r := range got.Relations {
		out = append(out, Relationship{r.Source, cmp.Or(relationships[r.Predicate], r.Predicate), r.Target})
	}
	return map[string]any{"results": out}, nil
}

// graphScope reads the ids that a request names. Filters are not taken: entities
// belong to a scope, not to memories.
func (c *call) graphScope() (sel scope.Selector, b readBody, err error) {
	if b, err = c.listBody(); err != nil {
		return sel, b, err
	}
	cond, err := b.conditions()
	if err != nil {
		return sel, b, err
	}
	if cond.rest != nil {
		return sel, b, invalid("user_id, agent_id and run_id are taken, and no filters")
	}
	s := cond.selector()
	return scope.Selector{User: s.User, Agent: s.Agent, Session: s.Session}, b, nil
}
