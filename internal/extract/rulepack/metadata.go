package rulepack

import (
	"fmt"
	"strings"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// The rule ids of candidates that no pattern made.
const (
	RuleMetadata = "metadata" // the publisher named subject and predicate
	RuleVerbatim = "verbatim" // the publisher wants no inference
	RuleIntent   = "intent"   // the publisher said what shall happen to facts
)

// explicit returns the one candidate of an episode that says by itself what it
// means; ok is false where its words have to be read.
func explicit(e memory.Episode) (c events.Candidate, ok bool) {
	c = events.Candidate{
		Kind: events.FactSemantic, Category: "biography", Text: e.Content, EvidenceQuote: e.Content, Confidence: 1, Explicit: true,
		Sensitivity: events.SensitivityNone, Cardinality: events.Many, EventTime: e.Timestamp,
	}
	subject, predicate := text(e, events.MetaSubject), text(e, events.MetaPredicate)
	switch {
	case subject != "" && predicate != "":
		c.Subject, c.Predicate, c.RuleID = subject, predicate, RuleMetadata
		c.Cardinality = events.One
		if c.Object = text(e, events.MetaObject); c.Object == "" {
			c.Object = e.Content
		}
	case e.Verbatim:
		c.RuleID = RuleVerbatim
	default:
		return events.Candidate{}, false
	}
	return c, true
}

// intended is the candidate that carries an intent where nothing was read.
func intended(e memory.Episode) events.Candidate {
	return events.Candidate{
		Kind: events.FactSemantic, Category: "biography", Subject: subjectUser, Text: e.Content, EvidenceQuote: e.Content,
		Confidence: 1, Explicit: true, Sensitivity: events.SensitivityNone, Cardinality: events.Many,
		EventTime: e.Timestamp, RuleID: RuleIntent,
	}
}

// intent reads what the publisher wants to happen.
func intent(e memory.Episode) (intent string, replaces []string, err error) {
	intent = text(e, events.MetaIntent)
	v, ok := e.Metadata[events.MetaReplaces]
	if !ok {
		return intent, nil, nil
	}
	if list, isList := v.([]string); isList {
		return intent, list, nil
	}
	if replaces, err = events.Replaces(v); err != nil {
		return "", nil, fmt.Errorf("read episode %s: %w", e.ID, err)
	}
	return intent, replaces, nil
}

func text(e memory.Episode, key string) string {
	s, _ := e.Metadata[key].(string)
	return s
}

// locate puts the time of an episode into the zone its relative dates count in:
// the metadata key tz (IANA name or UTC offset), else its own offset.
func locate(at time.Time, metadata map[string]any) time.Time {
	name, _ := metadata[events.MetaTimezone].(string)
	if name == "" {
		return at
	}
	for _, layout := range [...]string{"-07:00", "-0700", "Z07:00"} {
		if t, err := time.Parse(layout, strings.TrimPrefix(name, "UTC")); err == nil {
			_, offset := t.Zone()
			return at.In(time.FixedZone(name, offset))
		}
	}
	if zone, err := time.LoadLocation(name); err == nil && name != "Local" {
		return at.In(zone)
	}
	return at
}
