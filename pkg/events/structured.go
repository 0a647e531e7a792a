package events

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
)

// structured is an event of structured mode, its members in the order in which
// people read them.
type structured struct {
	SpecVersion   string          `json:"specversion"`
	Type          Kind            `json:"type"`
	Source        string          `json:"source"`
	ID            string          `json:"id"`
	Time          string          `json:"time,omitempty"`
	Subject       string          `json:"subject"`
	Project       string          `json:"project"`
	Sequence      string          `json:"sequence,omitempty"`
	CorrelationID string          `json:"correlationid,omitempty"`
	CausationID   string          `json:"causationid,omitempty"`
	Traceparent   string          `json:"traceparent,omitempty"`
	ContentType   string          `json:"datacontenttype"`
	Data          json.RawMessage `json:"data"`
}

// EncodeStructured writes an event in CloudEvents structured mode, on one line,
// for readers outside a broker. The data is JSON, of the kind that meta
// names. Its sequence is that of the CloudEvents sequence extension.
func EncodeStructured(meta Meta, data []byte) ([]byte, error) {
	if err := meta.Scope.Validate(); err != nil {
		return nil, scopeError(err)
	}
	e := structured{
		SpecVersion: "1.0", Type: meta.Kind, Source: meta.Source, ID: meta.ID, Subject: meta.Scope.Key(), Project: meta.Scope.Project,
		CorrelationID: meta.CorrelationID, CausationID: meta.CausationID, Traceparent: meta.Traceparent, ContentType: jsonType, Data: data,
	}
	if !meta.Time.IsZero() {
		e.Time = meta.Time.UTC().Format(time.RFC3339Nano)
	}
	if meta.Sequence > 0 {
		e.Sequence = strconv.FormatUint(meta.Sequence, 10)
	}
	return marshal(e)
}

// readStructured reads an event of structured mode and the data it carries. An
// extension may be a boolean or a number; its JSON text is then its value.
func readStructured(body []byte) (a attributes, data []byte, err error) {
	var members map[string]json.RawMessage
	if err := unmarshal(body, &members, maxOwnDepth); err != nil {
		return a, nil, err
	}
	for name, raw := range members {
		if name == "data" || name == "data_base64" || string(raw) == "null" {
			continue
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			if required(name) {
				return a, nil, invalid(name, "must be a string")
			}
			text = string(raw)
		}
		a.set(name, text)
	}
	plain, ok := members["data"]
	encoded, base64d := members["data_base64"]
	switch {
	case ok && base64d:
		return a, nil, malformed("data_base64", "stands beside data")
	case base64d:
		var text string
		if err := json.Unmarshal(encoded, &text); err != nil {
			return a, nil, invalid("data_base64", "must be a string")
		}
		data, err = base64.StdEncoding.DecodeString(text)
		if err != nil {
			return a, nil, invalid("data_base64", "is not base64")
		}
		return a, data, nil
	case ok:
		return a, plain, nil
	}
	return a, nil, malformed("data", "is required")
}

// required reports whether an attribute is a string by the standard.
func required(name string) bool {
	switch name {
	case "specversion", "type", "source", "id", "subject", "time", "datacontenttype":
		return true
	}
	return false
}
