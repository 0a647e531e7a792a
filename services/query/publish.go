package query

import (
	"context"
	"errors"
	"net/http"

	"palimpsest/internal/pipeline"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

// unpublished says why something was not published: because it never can be, or
// because the stream does not take it now. field is the part of the body that it
// was, empty for the whole.
func (s *Service) unpublished(ctx context.Context, field string, err error) error {
	var refused *events.FieldError
	var told *api.Problem
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &refused):
		if field != "" {
			field += "."
		}
		return fieldProblem(field, refused)
	case pipeline.IsRefused(err):
		return api.NewProblem(http.StatusRequestEntityTooLarge, api.CodeBodyTooLarge, either(field, "body"), "is more than the stream takes")
	}
	s.failed(ctx, err)
	if errors.Is(err, pipeline.ErrBacklog) {
		return api.NewProblem(http.StatusTooManyRequests, api.CodeRateLimited, field, "too much of what was said waits to be stored")
	}
	if errors.Is(err, pipeline.ErrFull) {
		return api.NewProblem(http.StatusInsufficientStorage, api.CodeStorageFull, field, "the disk is full; see /readyz")
	}
	detail := "the stream does not answer; see /readyz"
	if field != "" {
		detail = "was not accepted by the stream; what stands before it was"
	}
	return api.NewProblem(http.StatusServiceUnavailable, api.CodeStreamUnavailable, field, "%s", detail)
}

// isContext reports whether err only means that a context ended.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
