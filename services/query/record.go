package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// The states of a write.
const (
	statusAccepted = "accepted"
	statusDone     = "done"
)

type recordInput struct {
	ProjectParam
	KeyHeader
	Unread
	Wait bool `query:"wait" doc:"Answer with what came of the messages."`
}

// record publishes messages. It reads nothing and calls no model: the consumers of
// the stream do.
func (s *Service) record(ctx context.Context, in *recordInput) (*written, error) {
	body, err := readRecord(in.RawBody)
	if err != nil {
		return nil, err
	}
	project, err := s.project(in.ProjectParam)
	if err != nil {
		return nil, err
	}
	most, err := s.patience(body.Timeout)
	if err != nil {
		return nil, err
	}
	body.Wait = body.Wait || in.Wait
	said, err := s.recorded(body, body.In(project))
	if err != nil {
		return nil, err
	}
	if said.payloads[0].Mode == events.ModeIncognito {
		return s.keepIncognito(ctx, said)
	}
	if err := s.checkRepeats(ctx, said); err != nil {
		return nil, err
	}
	said.wait, said.most = body.Wait, most
	return s.once(ctx, project, "POST /v1/episodes", in.Key, in.RawBody, func(a attempt) (*written, error) {
		return s.publishRecord(ctx, a.correlation, said)
	})
}

// readRecord reads the body of a record. Its messages are a list, one message or
// a string; they are read apart, so that an error names its field in full.
func readRecord(text []byte) (api.Record, error) {
	type record struct {
		api.Record
		Messages json.RawMessage `json:"messages"`
	}
	body, err := read[record](text)
	if err != nil {
		return body.Record, err
	}
	body.Record.Messages, err = readMessages(bytes.TrimSpace(body.Messages))
	return body.Record, err
}

func readMessages(raw []byte) (out []api.Message, err error) {
	const path = "messages"
	message := reflect.TypeFor[api.Message]()
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case raw[0] == '"':
		out = make([]api.Message, 1)
		return out, readInto(raw, path, &out[0].Content)
	case raw[0] == '{':
		out = make([]api.Message, 1)
		if err := readInto(raw, path, &out[0]); err != nil {
			return nil, err
		}
		return out, checkMembers(raw, path+".", message)
	}
	if err := readInto(raw, path, &out); err != nil {
		return nil, err
	}
	var each []json.RawMessage
	if err := json.Unmarshal(raw, &each); err != nil {
		return nil, err
	}
	for i, m := range each {
		if err := checkMembers(m, fmt.Sprintf("%s[%d].", path, i), message); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Service) patience(seconds float64) (time.Duration, error) {
	switch {
	case seconds == 0:
		return s.config.Wait, nil
	case !(seconds > 0 && seconds <= s.config.MaxWait.Seconds()):
		return 0, invalid("timeout", "%g is outside 0 to %g seconds", seconds, s.config.MaxWait.Seconds())
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// said is what a record publishes.
type said struct {
	owner    scope.Scope
	payloads []events.EpisodeRecorded
	// ids of the messages; empty where the caller gave none.
	ids  []string
	wait bool
	most time.Duration
}

// recorded turns a body into payloads, all valid or none.
func (s *Service) recorded(body api.Record, owner scope.Scope) (said, error) {
	out := said{owner: owner}
	if err := owner.Validate(); err != nil {
		return out, err
	}
	if len(body.Messages) == 0 {
		return out, invalid("messages", "needs at least one message")
	}
	switch {
	case body.Prompt != "" && !s.modelAnswers():
		return out, invalid("prompt", "needs a language model (llm.provider) and an enabled rule with request: true")
	case len(body.Prompt) > s.config.maxContent():
		return out, invalid("prompt", "is %d bytes, more than %d", len(body.Prompt), s.config.maxContent())
	}
	for i, m := range body.Messages {
		path := fmt.Sprintf("messages[%d].", i)
		if m.ID != "" && slices.Contains(out.ids, m.ID) {
			return out, invalid(path+"id", "is that of an earlier message")
		}
		p, err := s.recordedMessage(m, owner, body)
		var refused *events.FieldError
		if errors.As(err, &refused) {
			return out, fieldProblem(path, refused)
		}
		if err != nil {
			return out, err
		}
		out.payloads, out.ids = append(out.payloads, p), append(out.ids, m.ID)
	}
	return out, nil
}

// modelAnswers reports whether a language model reads the messages that ask for a tick
// of their own. Without one the tick would find what it finds anyway.
func (s *Service) modelAnswers() bool {
	r, ok := memory.Requested(s.deps.Rules)
	return ok && r.Class == events.ClassModel
}

func (s *Service) recordedMessage(m api.Message, owner scope.Scope, body api.Record) (events.EpisodeRecorded, error) {
	p := events.EpisodeRecorded{
		Scope: owner, Role: events.Role(m.Role), Content: m.Content, SourceNode: m.SourceNode,
		Metadata: m.Metadata, Mode: events.Mode(m.Mode), Infer: body.Infer, Prompt: body.Prompt,
		Request: (body.Prompt != "" || body.Wait) && s.modelAnswers(),
	}
	if p.Role == "" {
		p.Role = events.RoleUser
	}
	if len(m.Timestamp) > 0 {
		if err := json.Unmarshal(m.Timestamp, &p.Timestamp); err != nil {
			return p, err
		}
	}
	if err := s.checkMode(p, body); err != nil {
		return p, err
	}
	if err := s.checkSizes(p); err != nil {
		return p, err
	}
	// A message that cannot be encoded would fail after half of the messages are
	// published.
	_, _, _, err := events.Encode(events.Meta{ID: either(m.ID, "-"), Source: source}, p)
	return p, err
}

// checkSizes refuses what ingest would bury, while the caller still listens.
func (s *Service) checkSizes(p events.EpisodeRecorded) error {
	tooLarge := func(field string, size, most int) error {
		return &events.FieldError{Field: field, Code: events.CodeTooLarge, Reason: fmt.Sprintf("is %d bytes, more than %d", size, most)}
	}
	if len(p.Content) > s.config.maxContent() {
		return tooLarge("content", len(p.Content), s.config.maxContent())
	}
	if len(p.Metadata) == 0 {
		return nil
	}
	text, err := json.Marshal(p.Metadata)
	if err == nil && len(text) > s.config.maxMetadata() {
		return tooLarge("metadata", len(text), s.config.maxMetadata())
	}
	return err
}

// publishRecord publishes the messages in order; the first failure stops, and
// the answer says which it was.
func (s *Service) publishRecord(ctx context.Context, correlation string, r said) (*written, error) {
	answer := &api.Written{CorrelationID: correlation, Status: statusAccepted}
	rules := s.answering()
	var w *waiter
	if r.wait && len(rules) > 0 {
		var err error
		if w, err = s.listen(ctx, r.owner.Project, correlation); err != nil {
			return nil, s.unpublished(ctx, "", err)
		}
		defer w.stop()
	}
	ids := make([]string, len(r.ids))
	for i, p := range r.payloads {
		ids[i] = either(r.ids[i], events.HashID(correlation, strconv.Itoa(i)))
		sequence, err := s.deps.Publisher.Publish(ctx, events.Meta{ID: ids[i], Source: source, CorrelationID: correlation}, p)
		if err != nil {
			return nil, s.unpublished(ctx, fmt.Sprintf("messages[%d]", i), err)
		}
		answer.Episodes = append(answer.Episodes, api.Accepted{ID: ids[i], Sequence: sequence})
		answer.At = seal(token{Scope: r.owner.Tokens(), Source: source, Episode: ids[i]})
	}
	if w == nil {
		return &written{Status: http.StatusAccepted, Body: answer}, nil
	}
	w.look = s.passedOver(r, ids, rules, s.outcomesOf(r, correlation, covers(rules, ids), w.look))
	outcomes, whole := w.wait(ctx, r.most, covers(rules, ids))
	if !whole {
		return &written{Status: http.StatusAccepted, Body: answer, pending: true}, nil
	}
	answer.Status, answer.Results, answer.Warnings = statusDone, viewResults(outcomes), skips(outcomes)
	return &written{Status: http.StatusOK, Body: answer}, nil
}

// outcomesOf reads the outcomes of the messages. A message with an id of the caller
// may have been recorded by an earlier request, whose outcomes then are the outcomes
// of this one too.
func (s *Service) outcomesOf(
	r said, correlation string, whole func([]events.Outcome) bool, own func(context.Context) ([]events.Outcome, error),
) func(context.Context) ([]events.Outcome, error) {
	return func(ctx context.Context) ([]events.Outcome, error) {
		all, err := own(ctx)
		if err != nil || whole(all) {
			return all, err
		}
		asked := []string{correlation, ""}
		for _, id := range r.ids {
			if id == "" {
				continue
			}
			e, err := s.deps.Store.Episode(ctx, r.owner, source, id)
			if errors.Is(err, store.ErrNotFound) || err == nil && slices.Contains(asked, e.CorrelationID) {
				continue
			}
			if err != nil {
				return nil, err
			}
			asked = append(asked, e.CorrelationID)
			earlier, err := s.deps.Store.Outcomes(ctx, r.owner.Project, e.CorrelationID)
			if err != nil {
				return nil, err
			}
			all = append(all, earlier...)
		}
		return all, nil
	}
}

// skips says which rules gave up on messages, and why.
func skips(outcomes []events.Outcome) []string {
	var out []string
	for _, o := range outcomes {
		if o.Skipped != "" {
			out = append(out, fmt.Sprintf("rule %s skipped %s: %s", o.Rule, strings.Join(o.EpisodeIDs, ", "), o.Skipped))
		}
	}
	return out
}
