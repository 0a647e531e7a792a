package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
)

// mem0 is a memory of mem0.
type mem0 struct {
	ID       string         `json:"id"`
	Memory   string         `json:"memory"`
	User     string         `json:"user_id"`
	Agent    string         `json:"agent_id"`
	Run      string         `json:"run_id"`
	Metadata map[string]any `json:"metadata"`
	Created  moment         `json:"created_at"`
	Updated  moment         `json:"updated_at"`
}

func (m mem0) messages() ([]Message, error) {
	return []Message{{
		ID: m.ID, User: m.User, Agent: m.Agent, Session: m.Run, Role: "user", Content: m.Memory, Time: m.Updated.or(m.Created),
		Metadata: m.Metadata, Memory: true,
	}}, nil
}

// edge is a fact of Zep or Graphiti. One that ended is left out.
type edge struct {
	ID      string `json:"uuid"`
	Fact    string `json:"fact"`
	Group   string `json:"group_id"`
	User    string `json:"user_id"`
	Valid   moment `json:"valid_at"`
	Created moment `json:"created_at"`
	Invalid moment `json:"invalid_at"`
	Expired moment `json:"expired_at"`
}

func (e edge) messages() ([]Message, error) {
	if !e.Invalid.IsZero() || !e.Expired.IsZero() {
		return nil, nil
	}
	user := e.User
	if user == "" {
		user = e.Group
	}
	return []Message{{ID: e.ID, User: user, Role: "user", Content: e.Fact, Time: e.Valid.or(e.Created), Memory: true}}, nil
}

// turn is one message: a line of JSON, a message of Zep, or an episode of Graphiti.
type turn struct {
	ID       string          `json:"id"`
	UUID     string          `json:"uuid"`
	User     string          `json:"user"`
	UserID   string          `json:"user_id"`
	Agent    string          `json:"agent"`
	Session  string          `json:"session"`
	ZepID    string          `json:"session_id"`
	Group    string          `json:"group_id"`
	Role     string          `json:"role"`
	RoleType string          `json:"role_type"`
	Sender   string          `json:"sender"`
	Source   string          `json:"source"`
	Content  json.RawMessage `json:"content"`
	Time     moment          `json:"timestamp"`
	Created  moment          `json:"created_at"`
	Valid    moment          `json:"valid_at"`
	Metadata map[string]any  `json:"metadata"`
}

func (t turn) messages() ([]Message, error) {
	m := Message{
		ID: either(t.ID, t.UUID), User: either(t.User, t.UserID, t.Group), Agent: t.Agent, Session: either(t.Session, t.ZepID),
		Role: role(either(t.RoleType, t.Role, t.Sender)), Content: text(t.Content), Time: t.Time.or(t.Valid, t.Created), Metadata: t.Metadata,
	}
	if t.Source != "message" {
		return []Message{m}, nil
	}
	// An episode of Graphiti has a line for each message: "name: text".
	var out []Message
	for n, line := range strings.Split(m.Content, "\n") {
		name, said, found := strings.Cut(line, ":")
		if !found {
			name, said = "", line
		}
		each := m
		if m.ID != "" {
			each.ID = fmt.Sprintf("%s-%d", m.ID, n+1)
		}
		each.Role, each.Content = speaker(name), strings.TrimSpace(said)
		out = append(out, each)
	}
	return out, nil
}

// speaker is the role in a name such as "user", "Nora(user)" or "assistant".
func speaker(name string) string {
	if _, inside, found := strings.Cut(strings.TrimSuffix(strings.TrimSpace(name), ")"), "("); found {
		name = inside
	}
	return role(strings.TrimSpace(name))
}

// session is a conversation with a list of messages: one of Zep, or a line of
// training data.
type session struct {
	ID       string            `json:"session_id"`
	Session  string            `json:"session"`
	User     string            `json:"user_id"`
	Owner    string            `json:"user"`
	Created  moment            `json:"created_at"`
	Messages []json.RawMessage `json:"messages"`
}

func (s session) messages() ([]Message, error) {
	var out []Message
	for i, raw := range s.Messages {
		messages, err := readAs(raw, turn.messages)
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		for _, m := range messages {
			m.Session, m.User = either(m.Session, s.ID, s.Session), either(m.User, s.User, s.Owner)
			if m.Time.IsZero() {
				m.Time = s.Created.Time
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// either returns the first text that is not empty.
func either(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
