package model

import (
	"embed"
	"encoding/json"
	"strings"
	"text/template"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

//go:embed prompts
var prompts embed.FS

var question = template.Must(template.ParseFS(prompts, "prompts/user.tmpl"))

func prompt(name string) string {
	raw, err := prompts.ReadFile("prompts/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(raw)
}

// instruction is the stable part of a request. A task of the user's own replaces
// ours; the format stays, because the reply must be read.
func instruction(task string) string {
	if strings.TrimSpace(task) == "" {
		task = prompt("task.txt")
	}
	return strings.TrimSpace(task) + "\n\n" + strings.TrimSpace(prompt("format.txt"))
}

// line is one turn as the prompt shows it.
type line struct {
	Number int
	Said   string
	Who    events.Role
	Text   string
}

// lineOf shows an episode on one line, so that its text cannot pass for another
// line or for the end of the conversation.
func lineOf(e memory.Episode, number int) line {
	text := oneLine(memory.BlankContext(e.Content))
	return line{Number: number, Said: e.Timestamp.Format("Mon 2006-01-02 15:04"), Who: e.Role, Text: text}
}

// oneLine is a text without line breaks and the signs of marks.
func oneLine(text string) string {
	return strings.NewReplacer("<", "‹", ">", "›").Replace(strings.Join(strings.Fields(text), " "))
}

// ask renders the variable part of a request.
func (p part) ask(known []events.Fact) (string, error) {
	data := struct {
		Known         []events.Fact
		Before, Lines []line
	}{Known: known}
	for _, e := range p.before {
		data.Before = append(data.Before, lineOf(e, 0))
	}
	for i, e := range p.episodes {
		data.Lines = append(data.Lines, lineOf(e, i+1))
	}
	var b strings.Builder
	if err := question.Execute(&b, data); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// told is a fact as the model returns it.
type told struct {
	Line        int     `json:"line"`
	Quote       string  `json:"quote"`
	Kind        string  `json:"kind"`
	Category    string  `json:"category"`
	Subject     string  `json:"subject"`
	Predicate   string  `json:"predicate"`
	Object      string  `json:"object"`
	Text        string  `json:"text"`
	Cardinality string  `json:"cardinality"`
	Explicit    bool    `json:"explicit"`
	Hedged      bool    `json:"hedged"`
	Transient   bool    `json:"transient"`
	Sensitive   string  `json:"sensitive"`
	Negated     bool    `json:"negated"`
	Since       string  `json:"since"`
	Until       string  `json:"until"`
	Confidence  float64 `json:"confidence"`
	Entities    []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	} `json:"entities"`
}

// schema requires every member, as endpoints demand that hold replies to it.
var schema = func() json.RawMessage {
	type object = map[string]any
	text, yes := object{"type": "string"}, object{"type": "boolean"}
	one := func(values ...string) object { return object{"type": "string", "enum": values} }
	return listSchema("facts", object{
		"line": object{"type": "integer"}, "quote": text, "kind": one("semantic", "procedural", "opinion"), "category": text,
		"subject": text, "predicate": text, "object": text, "text": text, "cardinality": one("one", "many"),
		"explicit": yes, "hedged": yes, "transient": yes, "sensitive": one("none", "personal", "sensitive"), "negated": yes,
		"since": text, "until": text, "confidence": object{"type": "number"},
		"entities": object{"type": "array", "items": closed(object{"name": text, "type": text})},
	})
}()

// closed is the schema of an object with all of the properties and no other.
func closed(properties map[string]any) map[string]any {
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	return map[string]any{"type": "object", "properties": properties, "required": sorted(names), "additionalProperties": false}
}

// listSchema is the schema of an object that holds a list of such objects under key.
func listSchema(key string, properties map[string]any) json.RawMessage {
	raw, err := json.Marshal(closed(map[string]any{key: map[string]any{"type": "array", "items": closed(properties)}}))
	if err != nil {
		panic(err) // it is a constant
	}
	return raw
}

// dateOf reads a date of a reply in the zone of the episode.
func dateOf(text string, said time.Time) *time.Time {
	at, err := time.ParseInLocation(time.DateOnly, strings.TrimSpace(text), said.Location())
	if err != nil {
		return nil
	}
	return &at
}
