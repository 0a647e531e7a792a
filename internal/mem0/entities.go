package mem0

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"palimpsest/internal/auth"
	"palimpsest/pkg/scope"
)

// Entity is a user, an agent, an app or a run that has memories.
type Entity struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Type     string         `json:"type"`
	Created  time.Time      `json:"created_at"`
	Updated  time.Time      `json:"updated_at"`
	Total    int            `json:"total_memories"`
	Owner    *string        `json:"owner"`
	Metadata map[string]any `json:"metadata"`
}

// entities lists the entities of all memories, by type and name.
func entities(c *call) (any, error) {
	number, size, err := paging(c.URL.Query(), 100)
	if err != nil {
		return nil, err
	}
	type key struct{ kind, name string }
	found := map[key]*Entity{}
	err = c.each(&conditions{}, func(m Memory) {
		for _, kind := range []string{"user", "agent", "app", "run"} {
			for _, name := range entityIDs(&m, kind) {
				e := found[key{kind, name}]
				if e == nil {
					e = &Entity{ID: kind + ":" + name, Name: name, Type: kind, Created: m.CreatedAt}
					found[key{kind, name}] = e
				}
				e.Total++
				if m.CreatedAt.Before(e.Created) {
					e.Created = m.CreatedAt
				}
				if m.UpdatedAt.After(e.Updated) {
					e.Updated = m.UpdatedAt
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	all := make([]*Entity, 0, len(found))
	for _, e := range found {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Entity) int { return cmp.Or(-cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name)) })
	out := make([]any, len(all))
	for i, e := range all {
		out[i] = e
	}
	return page(c.Request, out, number, size), nil
}

// The organization of every answer, and the project of a caller whose key names
// none.
const (
	organization = "palimpsest"
	anyProject   = "default"
)

// ping tells a client that it is connected, and the project of its key.
func ping(c *call) (any, error) {
	return map[string]any{"status": "ok", "org_id": organization, "project_id": c.projectOf(), "user_email": nil}, nil
}

// project answers with the settings that were asked for, none of which is set.
func project(c *call) (any, error) {
	out := map[string]any{}
	for _, name := range c.URL.Query()["fields"] {
		out[name] = nil
	}
	return out, nil
}

// projectOf is the project that a call is about.
func (c *call) projectOf() string {
	return cmp.Or(auth.Of(c.Context()).Project, c.URL.Query().Get("project"), anyProject)
}

// collections lists the one collection that a call sees, that of its project.
func collections(c *call) (any, error) { return []string{c.projectOf()}, nil }

// collection tells how many memories a project has.
func collection(c *call) (any, error) {
	name := c.projectOf()
	if c.PathValue("name") != name {
		return nil, &failure{http.StatusNotFound, "Collection not found!"}
	}
	stats, err := c.Stats(c.Context(), scope.Selector{All: true})
	if err != nil {
		return nil, err
	}
	return map[string]any{"name": name, "count": stats.Facts}, nil
}

func count(n int) string {
	if n == 1 {
		return "1 memory"
	}
	return strconv.Itoa(n) + " memories"
}
