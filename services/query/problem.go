package query

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/audit"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// retryAfter is the Retry-After header, in seconds, while a dependency is down.
const retryAfter = "2"

// answerWithProblems makes the router's own errors (a missing parameter, a body
// that cannot be read) problem documents like ours. The router offers one hook
// for the whole process; it is set once and depends on nothing.
var answerWithProblems = sync.OnceFunc(func() {
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return routerProblem(status, msg, errs)
	}
	huma.NewErrorWithContext = func(_ huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return routerProblem(status, msg, errs)
	}
})

func routerProblem(status int, msg string, errs []error) *api.Problem {
	var told *api.Problem
	var size *http.MaxBytesError
	var detail *huma.ErrorDetail
	err := errors.Join(errs...)
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &size):
		return api.NewProblem(http.StatusRequestEntityTooLarge, api.CodeBodyTooLarge, "body", "is more than %d bytes", size.Limit)
	case errors.As(err, &detail):
		_, field, _ := strings.Cut(detail.Location, ".") // query.limit, path.id
		return invalid(field, "%s", detail.Message)
	case status == http.StatusRequestTimeout:
		return api.NewProblem(status, api.CodeMalformed, "body", "did not arrive in time")
	case status >= http.StatusInternalServerError && err != nil:
		return api.NewProblem(http.StatusBadRequest, api.CodeMalformed, "body", "did not arrive whole")
	case status >= http.StatusInternalServerError:
		return api.NewProblem(status, api.CodeInternal, "", "the request could not be answered")
	case status == http.StatusBadRequest && err == nil: // the only thing the router misses by itself
		return api.NewProblem(status, api.CodeMalformed, "body", "is empty")
	}
	return invalid("", "%s", msg)
}

// problem maps an error to the answer for the caller. An internal error keeps its
// text out of the answer.
func (s *Service) problem(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	p := explained(err)
	if p == nil {
		s.failed(ctx, err)
		p = api.NewProblem(http.StatusServiceUnavailable, api.CodeStoreUnavailable, "", "a dependency does not answer; see /readyz")
	}
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {retryAfter}})
	}
	return p
}

// failed records what the caller is not told. A caller who went away is no
// failure.
func (s *Service) failed(ctx context.Context, err error) {
	if errors.Is(err, context.Canceled) {
		s.deps.Logger.DebugContext(ctx, "query: caller went away", "error", err)
		return
	}
	s.deps.Logger.WarnContext(ctx, "query: request failed", "error", err)
}

// explained is the problem that an error stands for, nil where it stands for
// none.
func explained(err error) *api.Problem {
	var told *api.Problem
	var field *events.FieldError
	var level *scope.Error
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &field):
		return fieldProblem("", field)
	case errors.As(err, &level):
		return scopeProblem(level)
	case errors.Is(err, audit.ErrTrimmed):
		return api.NewProblem(http.StatusGone, api.CodeTrimmed, "after", "AUDIT has dropped what comes next, and the audit log lacks it")
	case errors.Is(err, store.ErrNotFound):
		return api.NewProblem(http.StatusNotFound, api.CodeNotFound, "", "there is no such id here")
	case errors.Is(err, store.ErrFull):
		return api.NewProblem(http.StatusInsufficientStorage, api.CodeStorageFull, "", "the disk is full; see /readyz")
	case errors.Is(err, store.ErrMismatch):
		return api.NewProblem(http.StatusUnprocessableEntity, api.CodeIdempotencyMismatch, "Idempotency-Key", "was used with another body")
	}
	return nil
}

// fieldProblem names a refused field of the value at path.
func fieldProblem(path string, e *events.FieldError) *api.Problem {
	status, code := http.StatusBadRequest, e.Code
	switch code {
	case events.CodeTooLarge:
		status = http.StatusRequestEntityTooLarge
	case events.CodeMalformed, events.CodeScopeMissing:
	default:
		code = api.CodeInvalidField
	}
	return api.NewProblem(status, code, path+e.Field, "%s", e.Reason)
}

func scopeProblem(e *scope.Error) *api.Problem {
	if e.Level == "scope" {
		return api.NewProblem(http.StatusBadRequest, api.CodeScopeMissing, "user", "%s", e.Reason)
	}
	return invalid(e.Level, "%s", e.Reason)
}

func invalid(field, format string, args ...any) *api.Problem {
	return api.NewProblem(http.StatusBadRequest, api.CodeInvalidField, field, format, args...)
}

func writeProblem(w http.ResponseWriter, p *api.Problem) {
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
