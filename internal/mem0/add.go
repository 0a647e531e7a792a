package mem0

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/lex"
	"palimpsest/pkg/api"
)

// addBody is the body of an add. Clients put the entities at the top or into
// filters.
type addBody struct {
	entityMembers
	Messages       json.RawMessage `json:"messages"`
	Filters        entityMembers   `json:"filters"`
	Metadata       map[string]any  `json:"metadata"`
	Infer          *bool           `json:"infer"`
	Prompt         string          `json:"prompt"`
	Timestamp      json.RawMessage `json:"timestamp"`
	ExpirationDate *string         `json:"expiration_date"`
	Version        string          `json:"version"`
}

// entityMembers are the ids that an add, a delete or a read names.
type entityMembers struct {
	User  string `json:"user_id"`
	Agent string `json:"agent_id"`
	App   string `json:"app_id"`
	Run   string `json:"run_id"`
}

// or fills what is empty from other.
func (e entityMembers) or(other entityMembers) entityMembers {
	pick := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	return entityMembers{pick(e.User, other.User), pick(e.Agent, other.Agent), pick(e.App, other.App), pick(e.Run, other.Run)}
}

func (e entityMembers) empty() bool { return e == entityMembers{} }

// Added is the answer of an add that does not wait.
type Added struct {
	Message string `json:"message"`
	Status  string `json:"status"`
	EventID string `json:"event_id"`
}

// addLater answers as soon as the stream holds the messages.
func addLater(c *call) (any, error) {
	w, _, err := c.add(false)
	if err != nil {
		return nil, err
	}
	return Added{"Memory processing has been queued for background execution", "PENDING", w.At}, nil
}

// Changed is what an add made of one memory.
type Changed struct {
	ID        string         `json:"id"`
	Event     string         `json:"event"`
	Memory    string         `json:"memory"`
	NewMemory string         `json:"new_memory,omitempty"`
	OldMemory string         `json:"old_memory,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// changes is the answer of an add that waits.
type changes struct {
	Results []Changed `json:"results"`
	// Status and EventID are set where the work goes on after the longest wait.
	Status  string `json:"status,omitempty"`
	EventID string `json:"event_id,omitempty"`
}

// addNow answers with the memories that the messages changed.
func addNow(c *call) (any, error) {
	w, body, err := c.add(true)
	if err != nil {
		return nil, err
	}
	out := changes{Results: viewChanges(w.Results, body.Metadata)}
	if w.Status != "done" {
		out.Status, out.EventID = "PENDING", w.At
	}
	if body.Version == "v1.0" {
		return out.Results, nil
	}
	return out, nil
}

func viewChanges(results []api.Result, metadata map[string]any) []Changed {
	out := []Changed{}
	for _, r := range results {
		m := Changed{ID: r.ID, Event: r.Event, Memory: r.Memory, OldMemory: r.OldMemory, Metadata: metadata}
		if r.Event == "ADD" || r.Event == "UPDATE" {
			m.NewMemory = r.Memory
		}
		if r.Event == "DELETE" && m.Memory == "" {
			m.Memory = r.OldMemory
		}
		out = append(out, m)
	}
	return out
}

func (c *call) add(wait bool) (w api.Written, body addBody, err error) {
	if err := c.body(&body); err != nil {
		return w, body, err
	}
	who := body.or(body.Filters)
	if who.empty() {
		return w, body, errNoEntity
	}
	for name, id := range who.ids() {
		if id == anyEntity {
			return w, body, invalid("%s: %q stands for every id in a filter", name, id)
		}
	}
	messages, err := readMessages(body)
	if err != nil {
		return w, body, err
	}
	expires, err := day(body.ExpirationDate)
	if err != nil {
		return w, body, err
	}
	metadata := kept(body.Metadata, who.App, expires)
	for i := range messages {
		messages[i].Metadata, messages[i].Timestamp = metadata, timestamp(body.Timestamp)
	}
	w, err = c.Record(c.Context(), api.Record{
		Scope: api.Scope{User: who.User, Agent: who.Agent, Session: who.Run}, Messages: messages, Wait: wait, Infer: body.Infer, Prompt: body.Prompt,
	}, c.Header.Get("Idempotency-Key"))
	return w, body, err
}

// day checks an expiration date.
func day(date *string) (string, error) {
	if date == nil || *date == "" {
		return "", nil
	}
	if _, err := time.Parse(time.DateOnly, *date); err != nil {
		return "", invalid("expiration_date: %q is not YYYY-MM-DD", lex.Clip(*date))
	}
	return *date, nil
}

// timestamp drops a null.
func timestamp(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// said is one message of a caller: its content is a text, a part or a list of
// parts.
type said struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func readMessages(body addBody) ([]api.Message, error) {
	var all []said
	switch raw := strings.TrimSpace(string(body.Messages)); {
	case strings.HasPrefix(raw, `"`):
		all = []said{{Content: body.Messages}}
	case strings.HasPrefix(raw, "{"):
		all = make([]said, 1)
		if err := json.Unmarshal(body.Messages, &all[0]); err != nil {
			return nil, invalid("messages cannot be read: %v", err)
		}
	case raw != "":
		if err := json.Unmarshal(body.Messages, &all); err != nil {
			return nil, invalid("messages cannot be read: %v", err)
		}
	}
	var out []api.Message
	for _, m := range all {
		if content := strings.TrimSpace(contentOf(m.Content)); content != "" {
			out = append(out, api.Message{Role: role(m.Role), Content: content})
		}
	}
	if len(out) == 0 {
		return nil, invalid("messages needs at least one message with a text")
	}
	return out, nil
}

// contentOf returns the text of a message. Images hold no text.
func contentOf(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	type part struct {
		Text string `json:"text"`
	}
	var parts []part
	if json.Unmarshal(raw, &parts) != nil {
		parts = make([]part, 1)
		_ = json.Unmarshal(raw, &parts[0]) // a part without a text is empty
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// role returns a role of the native API.
func role(name string) string {
	switch {
	case name == "developer":
		return "system"
	case name == "function":
		return "tool"
	case slices.Contains([]string{"assistant", "system", "tool"}, name):
		return name
	}
	return "user"
}
