package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pkg/api"
)

func (s *server) addWrites(to *sdk.Server) {
	writes := func(title string, destructive, idempotent bool) *sdk.ToolAnnotations {
		return &sdk.ToolAnnotations{Title: title, DestructiveHint: &destructive, IdempotentHint: idempotent, OpenWorldHint: new(bool)}
	}
	sdk.AddTool(to, &sdk.Tool{
		Name: "remember_fact", Annotations: writes("Remember a fact", false, true),
		Description: "Remember something lasting. What is known already is not added twice; what it contradicts becomes an earlier version.",
	}, s.remember)
	sdk.AddTool(to, &sdk.Tool{
		Name: "correct_fact", Annotations: writes("Correct a fact", true, false),
		Description: "Replace the text of a fact that is wrong or outdated. Its earlier version stays in its history.",
	}, s.correct)
	sdk.AddTool(to, &sdk.Tool{
		Name: "confirm_fact", Annotations: writes("Confirm a fact", false, true),
		Description: "Mark a fact as certain, because the user confirmed it. It no longer decays.",
	}, s.confirm)
	sdk.AddTool(to, &sdk.Tool{
		Name: "forget", Annotations: writes("Forget a fact", true, true),
		Description: "Close a fact, so that searches no longer return it. Its history stays.",
	}, s.forget)
}

// Change is the answer of a write.
type Change struct {
	Status string `json:"status" jsonschema:"done, or accepted: the write is queued and takes effect soon."`
	Event  string `json:"event,omitempty" jsonschema:"ADD, UPDATE, DELETE, or NONE: nothing changed."`
	Reason string `json:"reason,omitempty"`
	Fact   Fact   `json:"fact,omitzero" jsonschema:"The fact after the change."`
}

func changed(w api.Written, err error) (*sdk.CallToolResult, Change, error) {
	if err != nil {
		return nil, Change{}, told(err)
	}
	out := Change{Status: w.Status}
	if len(w.Results) > 0 {
		out.Event, out.Reason = w.Results[0].Event, w.Results[0].Reason
	}
	if w.Fact != nil {
		out.Fact = viewFact(*w.Fact)
	}
	return nil, out, nil
}

// RememberArgs are the arguments of remember_fact.
type RememberArgs struct {
	Text       string `json:"text" jsonschema:"One self-contained sentence, for example: Nora works at Fenwick Labs."`
	Kind       string `json:"kind,omitempty" jsonschema:"semantic (the default), procedural or opinion."`
	Category   string `json:"category,omitempty" jsonschema:"For example biography, preference, work."`
	Subject    string `json:"subject,omitempty" jsonschema:"Whom or what the fact is about."`
	Predicate  string `json:"predicate,omitempty" jsonschema:"For example lives_in. With subject and object it lets later facts replace this one."`
	Object     string `json:"object,omitempty"`
	EventTime  string `json:"event_time,omitempty" jsonschema:"When it became true: RFC 3339 or YYYY-MM-DD; now unless given."`
	ValidUntil string `json:"valid_until,omitempty" jsonschema:"When it stops being true: RFC 3339 or YYYY-MM-DD."`
	Whose
}

func (s *server) remember(ctx context.Context, _ *sdk.CallToolRequest, in RememberArgs) (*sdk.CallToolResult, Change, error) {
	owner, err := s.writes(in.Whose)
	if err != nil {
		return nil, Change{}, err
	}
	since, err := instant("event_time", in.EventTime)
	if err != nil {
		return nil, Change{}, err
	}
	until, err := instant("valid_until", in.ValidUntil)
	if err != nil {
		return nil, Change{}, err
	}
	return changed(s.memory.Remember(ctx, api.Remember{
		Scope: owner, Text: in.Text, Kind: in.Kind, Category: in.Category, Subject: in.Subject, Predicate: in.Predicate, Object: in.Object,
		EventTime: timeOf(since), ValidUntil: timeOf(until),
	}, ""))
}

// instant reads an optional time.
func instant(name, text string) (*api.Instant, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no time is no error
	}
	var i api.Instant
	if err := i.UnmarshalText([]byte(text)); err != nil {
		return nil, fmt.Errorf("%s: %s is neither RFC 3339 nor YYYY-MM-DD", name, quoted(text))
	}
	return &i, nil
}

func timeOf(i *api.Instant) *time.Time {
	if i == nil {
		return nil
	}
	return &i.Time
}

// check refuses an empty id, which would be another route.
func (a FactArgs) check() error {
	if a.ID == "" {
		return errors.New("id is empty; search_memory returns the ids of facts")
	}
	return nil
}

// ChangeArgs name a fact and the revision that the caller has seen.
type ChangeArgs struct {
	FactArgs
	Revision uint64 `json:"revision,omitempty" jsonschema:"The revision that you have seen. If the fact has changed since, the call fails and returns its current text."`
}

// CorrectArgs are the arguments of correct_fact.
type CorrectArgs struct {
	ChangeArgs
	Text     string `json:"text" jsonschema:"The corrected fact, as one self-contained sentence."`
	Category string `json:"category,omitempty" jsonschema:"The category; as it was unless given."`
	Object   string `json:"object,omitempty" jsonschema:"The object; as it was unless given."`
}

func (s *server) correct(ctx context.Context, _ *sdk.CallToolRequest, in CorrectArgs) (*sdk.CallToolResult, Change, error) {
	if err := in.check(); err != nil {
		return nil, Change{}, err
	}
	return changed(s.memory.Correct(ctx, in.ID, in.Revision, api.Correct{Text: in.Text, Category: in.Category, Object: in.Object}))
}

func (s *server) confirm(ctx context.Context, _ *sdk.CallToolRequest, in ChangeArgs) (*sdk.CallToolResult, Change, error) {
	if err := in.check(); err != nil {
		return nil, Change{}, err
	}
	return changed(s.memory.Confirm(ctx, in.ID, in.Revision))
}

func (s *server) forget(ctx context.Context, _ *sdk.CallToolRequest, in ChangeArgs) (*sdk.CallToolResult, Change, error) {
	if err := in.check(); err != nil {
		return nil, Change{}, err
	}
	return changed(s.memory.Delete(ctx, in.ID, in.Revision))
}
