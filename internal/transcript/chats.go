package transcript

import (
	"encoding/json"
	"slices"
)

// chatGPT is a conversation of ChatGPT: a tree of messages, of which the branch that
// ends in the current node was shown last.
type chatGPT struct {
	ID           string              `json:"id"`
	Conversation string              `json:"conversation_id"`
	Title        string              `json:"title"`
	Created      moment              `json:"create_time"`
	Current      string              `json:"current_node"`
	Mapping      map[string]chatTurn `json:"mapping"`
}

type chatTurn struct {
	Parent  string `json:"parent"`
	Message *struct {
		ID     string `json:"id"`
		Author struct {
			Role string `json:"role"`
		} `json:"author"`
		Created moment `json:"create_time"`
		Content struct {
			Type  string          `json:"content_type"`
			Parts json.RawMessage `json:"parts"`
		} `json:"content"`
		Metadata struct {
			Hidden bool `json:"is_visually_hidden_from_conversation"`
		} `json:"metadata"`
	} `json:"message"`
}

func (c chatGPT) messages() ([]Message, error) {
	session := c.Conversation
	if session == "" {
		session = c.ID
	}
	var out []Message
	seen := map[string]bool{} // a damaged tree may have a circle
	for at := c.current(); at != "" && !seen[at]; at = c.Mapping[at].Parent {
		seen[at] = true
		m := c.Mapping[at].Message
		if m == nil || m.Metadata.Hidden || m.Author.Role != "user" && m.Author.Role != "assistant" ||
			m.Content.Type != "text" && m.Content.Type != "multimodal_text" {
			continue // instructions, calls of tools and thoughts
		}
		out = append(out, Message{
			ID: m.ID, Session: session, Role: role(m.Author.Role), Content: text(m.Content.Parts), Time: m.Created.or(c.Created), Metadata: titled(c.Title),
		})
	}
	slices.Reverse(out)
	return out, nil
}

// current is the node that was shown last: the named one, or the newest.
func (c chatGPT) current() string {
	if _, ok := c.Mapping[c.Current]; ok {
		return c.Current
	}
	newest := ""
	for id, n := range c.Mapping {
		if n.Message == nil {
			continue
		}
		if newest == "" || n.Message.Created.After(c.Mapping[newest].Message.Created.Time) ||
			n.Message.Created.Equal(c.Mapping[newest].Message.Created.Time) && id > newest {
			newest = id
		}
	}
	return newest
}

// claude is a conversation of Claude.
type claude struct {
	ID       string `json:"uuid"`
	Name     string `json:"name"`
	Created  moment `json:"created_at"`
	Messages []struct {
		ID      string          `json:"uuid"`
		Sender  string          `json:"sender"`
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
		Created moment          `json:"created_at"`
	} `json:"chat_messages"`
}

func (c claude) messages() ([]Message, error) {
	var out []Message
	for _, m := range c.Messages {
		content := text(m.Content)
		if content == "" {
			content = m.Text
		}
		out = append(out, Message{ID: m.ID, Session: c.ID, Role: role(m.Sender), Content: content, Time: m.Created.or(c.Created), Metadata: titled(c.Name)})
	}
	return out, nil
}
