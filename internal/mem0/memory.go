package mem0

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"palimpsest/internal/filter"
	"palimpsest/pkg/api"
)

// Memory is a fact in mem0's members.
type Memory struct {
	ID             string         `json:"id"`
	Memory         string         `json:"memory"`
	Hash           string         `json:"hash"`
	UserID         *string        `json:"user_id"`
	AgentID        *string        `json:"agent_id"`
	AppID          *string        `json:"app_id"`
	RunID          *string        `json:"run_id"`
	Metadata       map[string]any `json:"metadata"`
	Categories     []string       `json:"categories"`
	CreatedAt      time.Time      `json:"created_at"`
	UpdatedAt      time.Time      `json:"updated_at"`
	ExpirationDate *string        `json:"expiration_date"`
	Score          *float64       `json:"score,omitempty"`

	runs []string
}

// kept returns the metadata of an episode or a fact for a caller's.
func kept(metadata map[string]any, app, expires string) map[string]any {
	out := map[string]any{}
	for name, v := range metadata {
		out[filter.Mem0Key(name)] = v
	}
	if app != "" {
		out[filter.Mem0App] = app
	}
	if expires != "" {
		out[filter.Mem0Expires] = expires
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// told returns the caller's metadata of what kept returned.
func told(metadata map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range metadata {
		if name, ok := filter.Mem0Caller(key); ok {
			out[name] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func viewMemory(f api.Fact) Memory {
	runs := f.SessionIDs
	if f.Session != "" {
		runs = []string{f.Session}
	}
	m := Memory{
		ID: f.ID, Memory: f.Text, Hash: f.Hash, UserID: some(f.User), AgentID: some(f.Agent),
		AppID: some(text(f.Metadata, filter.Mem0App)), ExpirationDate: some(text(f.Metadata, filter.Mem0Expires)),
		Metadata: told(f.Metadata), Categories: []string{}, CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt, runs: runs,
	}
	if len(runs) > 0 {
		m.RunID = some(runs[len(runs)-1])
	}
	if f.Category != "" {
		m.Categories = []string{f.Category}
	}
	return m
}

func text(metadata map[string]any, name string) string {
	s, _ := metadata[name].(string)
	return s
}

func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// expired reports whether the memory's last day has passed.
func (m Memory) expired(now time.Time) bool {
	return m.ExpirationDate != nil && *m.ExpirationDate < now.UTC().Format(time.DateOnly)
}

// fields reduces a memory to the members that the caller asked for; id stays.
func (m Memory) fields(names []string) any {
	if len(names) == 0 {
		return m
	}
	all := object(m)
	maps.DeleteFunc(all, func(name string, _ any) bool {
		return name != "id" && name != "score" && !slices.Contains(names, name)
	})
	return all
}

// object returns the JSON members of a memory.
func object(m Memory) map[string]any {
	out := map[string]any{}
	raw, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(err) // the type is one of this package
	}
	return out
}
