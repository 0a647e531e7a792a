package events

import "fmt"

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
	CodeUnknownKind  = "unknown_kind"   // a type or major version nobody knows
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

func invalid(field, format string, args ...any) error {
	return &FieldError{Field: field, Code: CodeInvalidField, Reason: fmt.Sprintf(format, args...)}
}
