package api

import (
	"fmt"
	"net/http"
)

// The stable codes of problems.
const (
	CodeScopeMissing        = "scope_missing"
	CodeInvalidField        = "invalid_field"
	CodeMalformed           = "malformed"
	CodeUnauthorized        = "unauthorized"
	CodeForbidden           = "forbidden"
	CodeNotFound            = "not_found"
	CodeMethodNotAllowed    = "method_not_allowed"
	CodeFactConflict        = "fact_conflict"
	CodeIDConflict          = "id_conflict"
	CodeBodyTooLarge        = "body_too_large"
	CodeNotRetriable        = "not_retriable"
	CodeIdempotencyMismatch = "idempotency_mismatch"
	CodeRuleInvalid         = "rule_invalid"
	CodeRateLimited         = "rate_limited"
	CodeTrimmed             = "trimmed"
	CodeStorageFull         = "storage_full"
	CodeStoreUnavailable    = "store_unavailable"
	CodeStreamUnavailable   = "stream_unavailable"
	CodeInternal            = "internal"
	CodeNotImplemented      = "not_implemented"
)

// Problem is an error as RFC 9457 has it, with a stable code and the offending
// field.
type Problem struct {
	Type   string `json:"type" doc:"A URI reference that names the problem."`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code"`
	Field  string `json:"field,omitempty"`
	// Current is what the other side of a conflict is.
	Current *Fact `json:"current,omitempty"`
	// RetryAfter is the header Retry-After in seconds, 0 for none.
	RetryAfter int `json:"-"`
}

// NewProblem returns a problem with that status, code and field.
func NewProblem(status int, code, field, format string, args ...any) *Problem {
	return &Problem{
		Type: "urn:palimpsest:problem:" + code, Title: http.StatusText(status),
		Status: status, Code: code, Field: field, Detail: fmt.Sprintf(format, args...),
	}
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Field != "" {
		return fmt.Sprintf("%s: %s: %s", p.Code, p.Field, p.Detail)
	}
	return p.Code + ": " + p.Detail
}

// GetStatus is the HTTP status of the answer.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is the media type of the answer.
func (p *Problem) ContentType(string) string { return "application/problem+json" }
