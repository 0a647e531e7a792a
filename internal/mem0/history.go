package mem0

import (
	"cmp"
	"time"
)

// Change is one step in the life of a memory, in the members of both families.
type Change struct {
	ID         string           `json:"id"`
	MemoryID   string           `json:"memory_id"`
	Event      string           `json:"event"`
	Input      []map[string]any `json:"input"`
	OldMemory  *string          `json:"old_memory"`
	NewMemory  *string          `json:"new_memory"`
	OldValue   *string          `json:"old_value"`
	NewValue   *string          `json:"new_value"`
	UserID     *string          `json:"user_id"`
	AgentID    *string          `json:"agent_id"`
	RunID      *string          `json:"run_id"`
	Categories []string         `json:"categories"`
	Metadata   map[string]any   `json:"metadata"`
	IsDeleted  bool             `json:"is_deleted"`
	Timestamp  time.Time        `json:"timestamp"`
	CreatedAt  time.Time        `json:"created_at"`
	UpdatedAt  time.Time        `json:"updated_at"`
}

// history answers with the changes of a memory, oldest first, without those that
// changed nothing.
func history(c *call) (any, error) {
	h, err := c.History(c.Context(), c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := []Change{}
	for _, each := range h.Changes {
		if each.Event == "NONE" {
			continue
		}
		v := Change{
			ID: each.DeltaID, MemoryID: h.FactID, Event: each.Event, Input: []map[string]any{},
			OldMemory: some(each.OldMemory), NewMemory: some(each.NewMemory), UserID: some(each.User), AgentID: some(each.Agent),
			RunID: some(each.Session), Categories: []string{}, IsDeleted: each.Event == "DELETE", Timestamp: each.AppliedAt,
			CreatedAt: each.AppliedAt, UpdatedAt: each.AppliedAt,
		}
		if v.IsDeleted {
			v.NewMemory = nil
		}
		v.OldValue, v.NewValue = v.OldMemory, v.NewMemory
		if f := cmp.Or(each.After, each.Before); f != nil {
			m := viewMemory(*f)
			v.Metadata, v.Categories, v.RunID = m.Metadata, m.Categories, m.RunID
		}
		out = append(out, v)
	}
	return out, nil
}
