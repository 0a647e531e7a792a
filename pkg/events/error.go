package events

import (
	"errors"
	"fmt"
)

// The codes of refused messages, as they stand in dead letters and problem
// documents.
const (
	CodeMalformed    = "malformed"      // not JSON, or not a CloudEvent
	CodeInvalidField = "invalid_field"  // a field has a wrong type, form or size
	CodeScopeMissing = "scope_missing"  // neither user, agent nor session is named
	CodeSubjectToken = "subject_token"  // a subject token is not canonical
	CodeTooLarge     = "body_too_large" // content or metadata over its limit
	CodeIDConflict   = "id_conflict"    // a known id with other content
	CodeFactConflict = "fact_conflict"  // replaces that cannot be resolved
	CodeUnknownKind  = "unknown_kind"   // an unknown type or major version
	CodePoison       = "poison"         // delivered too often without an answer
)

// FieldError names the field of a message that is refused, as a JSON path
// without the leading "$." ("metadata.intent"), and why.
type FieldError struct {
	Field  string
	Code   string
	Reason string
}

func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// ErrUnknownKind matches the [*FieldError] of a message with an unknown type or
// major version. Producers may be newer than their consumers during a deployment,
// so the error may pass with time: unlike other FieldErrors it is not permanent
// while the message is young.
var ErrUnknownKind = errors.New("events: unknown kind")

// Is makes errors.Is(err, [ErrUnknownKind]) work.
func (e *FieldError) Is(target error) bool {
	return target == ErrUnknownKind && e.Code == CodeUnknownKind
}

func invalid(field, format string, args ...any) error {
	return &FieldError{Field: field, Code: CodeInvalidField, Reason: fmt.Sprintf(format, args...)}
}

// within puts the path of a value before the field that its error names.
func within(path string, err error) error {
	var refused *FieldError
	if !errors.As(err, &refused) {
		return err
	}
	return &FieldError{Field: join(path, refused.Field), Code: refused.Code, Reason: refused.Reason}
}
