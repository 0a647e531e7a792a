package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// value has the members by which forms are told apart.
type value struct {
	Mapping      json.RawMessage   `json:"mapping"`
	ChatMessages json.RawMessage   `json:"chat_messages"`
	Memory       *string           `json:"memory"`
	Fact         *string           `json:"fact"`
	Content      json.RawMessage   `json:"content"`
	Messages     []json.RawMessage `json:"messages"`
	Results      []json.RawMessage `json:"results"`
	Memories     []json.RawMessage `json:"memories"`
	Sessions     []json.RawMessage `json:"sessions"`
	Episodes     []json.RawMessage `json:"episodes"`
	Edges        []json.RawMessage `json:"edges"`
}

// read returns the messages of one value.
func read(raw json.RawMessage) ([]Message, error) {
	var v value
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	switch {
	case v.Mapping != nil:
		return readAs(raw, chatGPT.messages)
	case v.ChatMessages != nil:
		return readAs(raw, claude.messages)
	case v.Memory != nil:
		return readAs(raw, mem0.messages)
	case v.Fact != nil:
		return readAs(raw, edge.messages)
	case v.Content != nil:
		return readAs(raw, turn.messages)
	case v.Messages != nil:
		return readAs(raw, session.messages)
	}
	var out []Message
	parts := slices.Concat(v.Results, v.Memories, v.Sessions, v.Episodes, v.Edges)
	if parts == nil {
		return nil, ErrUnknown
	}
	for i, part := range parts {
		messages, err := read(part)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i+1, err)
		}
		out = append(out, messages...)
	}
	return out, nil
}

func readAs[T any](raw json.RawMessage, messages func(T) ([]Message, error)) ([]Message, error) {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return messages(v)
}

// moment reads RFC 3339, a time without a zone (which is taken as UTC) or unix
// seconds.
type moment struct{ time.Time }

// UnmarshalJSON implements [json.Unmarshaler].
func (m *moment) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			return nil
		}
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", time.DateOnly} {
			if at, err := time.Parse(layout, text); err == nil {
				m.Time = at
				return nil
			}
		}
		return fmt.Errorf("%q is no time", text)
	}
	var seconds *float64
	if err := json.Unmarshal(raw, &seconds); err != nil {
		return err
	}
	if seconds != nil {
		m.Time = time.UnixMilli(int64(*seconds * 1000)).UTC()
	}
	return nil
}

// or returns the first time that is set.
func (m moment) or(others ...moment) time.Time {
	for _, other := range append([]moment{m}, others...) {
		if !other.IsZero() {
			return other.Time
		}
	}
	return time.Time{}
}

// role maps the names of other programs.
func role(name string) string {
	switch name = strings.ToLower(name); name {
	case "human", "user", "":
		return "user"
	case "ai", "assistant", "model", "bot":
		return "assistant"
	case "system", "developer":
		return "system"
	case "tool", "function":
		return "tool"
	}
	return "user"
}

// titled is metadata with the title of a conversation.
func titled(title string) map[string]any {
	if title == "" {
		return nil
	}
	return map[string]any{"title": title}
}

// text joins the texts of a content: a text, a part or a list of parts. Images and
// files hold none.
func text(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) == nil {
		var texts []string
		for _, part := range parts {
			if t := text(part); t != "" {
				texts = append(texts, t)
			}
		}
		return strings.Join(texts, "\n")
	}
	var part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &part) // another kind of part has no text
	if part.Type != "" && part.Type != "text" && part.Type != "input_text" && part.Type != "output_text" {
		return ""
	}
	return part.Text
}
