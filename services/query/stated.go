package query

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

// What a candidate of an API caller says of itself.
const (
	statedBy   = "api@v1"
	statedRule = "api"
)

// stated is what a caller states, as the candidate that is decided.
func (s *Service) stated(body api.Remember) (events.Candidate, error) {
	c := events.Candidate{
		Kind: events.FactKind(either(body.Kind, string(events.FactSemantic))), Category: body.Category, Subject: body.Subject,
		Predicate: body.Predicate, Object: body.Object, Text: strings.TrimSpace(body.Text), Confidence: 1, Explicit: true,
		Sensitivity: events.SensitivityNone, Cardinality: events.Many, SourceRole: events.RoleOperator,
		EventTime: s.deps.Now(), ValidUntil: body.ValidUntil, Metadata: body.Metadata,
		Extractor: statedBy, RuleID: statedRule,
	}
	if err := s.checkStated(c.Text, c.Metadata); err != nil {
		return c, err
	}
	if !c.Kind.Valid() {
		return c, invalid("kind", "%q is not a kind of fact", lex.Clip(body.Kind))
	}
	if body.Confidence != nil {
		c.Confidence = *body.Confidence
	}
	if !(c.Confidence >= 0 && c.Confidence <= 1) {
		return c, invalid("confidence", "%g is outside [0,1]", c.Confidence)
	}
	if body.EventTime != nil {
		c.EventTime = *body.EventTime
	}
	if body.Session != "" {
		c.SessionIDs = []string{body.Session}
	}
	c.EvidenceQuote = c.Text
	return c, nil
}

func (s *Service) checkCorrect(body api.Correct) error {
	return s.checkStated(strings.TrimSpace(body.Text), body.Metadata)
}

// checkStated applies the size limits of episodes to a stated fact.
func (s *Service) checkStated(text string, metadata map[string]any) error {
	if text == "" {
		return invalid("text", "is required")
	}
	if n := s.config.maxContent(); len(text) > n {
		return &events.FieldError{Field: "text", Code: events.CodeTooLarge, Reason: fmt.Sprintf("is %d bytes, more than %d", len(text), n)}
	}
	if len(metadata) == 0 {
		return nil
	}
	raw, err := json.Marshal(metadata)
	if n := s.config.maxMetadata(); err == nil && len(raw) > n {
		return &events.FieldError{Field: "metadata", Code: events.CodeTooLarge, Reason: fmt.Sprintf("is %d bytes, more than %d", len(raw), n)}
	}
	return err
}

// corrected keeps of the fact what the body leaves out.
func corrected(f store.Fact, body api.Correct, now time.Time) events.Candidate {
	c := events.Candidate{
		Kind: f.Kind, Category: f.Category, Subject: f.Subject, Predicate: f.Predicate, Object: f.Object,
		Text: strings.TrimSpace(body.Text), Confidence: 1, Explicit: true, Sensitivity: f.Sensitivity,
		Cardinality: f.Cardinality, SourceRole: events.RoleOperator, EventTime: now, Metadata: f.Metadata,
		Extractor: statedBy, RuleID: statedRule, SessionIDs: f.SessionIDs, Replaces: []string{f.ID},
	}
	if body.Category != "" {
		c.Category = body.Category
	}
	if body.Object != "" {
		c.Object = body.Object
	}
	if body.Metadata != nil {
		c.Metadata = body.Metadata
	}
	if body.EventTime != nil {
		c.EventTime = *body.EventTime
	}
	c.EvidenceQuote = c.Text
	return c
}
