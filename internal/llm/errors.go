package llm

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The sentinel errors of the contract.
var (
	// ErrRateLimited: too many requests or tokens; the provider may say for how long
	// (see [RetryAfter]).
	ErrRateLimited = errors.New("llm: rate limited")
	// ErrQuota: the credit or the quota is used up. It lasts until it is paid
	// for, or the period of the quota ends.
	ErrQuota = errors.New("llm: quota exhausted")
	// ErrDenied: the key is wrong, or the model is not there. It lasts until the
	// configuration changes.
	ErrDenied = errors.New("llm: key or model not accepted")
	// ErrUnavailable: the endpoint does not answer, answers too late, or fails.
	ErrUnavailable = errors.New("llm: provider unavailable")
	// ErrInvalid: the endpoint does not take this request, however often it is made.
	ErrInvalid = errors.New("llm: request not accepted")
	// ErrRefused: the model declines to answer this request.
	ErrRefused = errors.New("llm: model refused to answer")
	// ErrMalformed: the reply cannot be read.
	ErrMalformed = errors.New("llm: reply not readable")
)

// Outage reports whether an error says nothing of the request: the same request
// may succeed later.
func Outage(err error) bool {
	return errors.Is(err, ErrRateLimited) || errors.Is(err, ErrQuota) || errors.Is(err, ErrDenied) || errors.Is(err, ErrUnavailable)
}

// Unusable reports whether an error is about the request: it will not succeed later.
// An error that [Paused] knows is none.
func Unusable(err error) bool {
	_, paused := Paused(err)
	return !paused && (errors.Is(err, ErrMalformed) || errors.Is(err, ErrRefused) || errors.Is(err, ErrInvalid))
}

// StatusError is an answer of an endpoint that is no reply. It wraps a sentinel.
type StatusError struct {
	Status     int
	RetryAfter time.Duration // 0 where the endpoint does not say
	Message    string        // of the endpoint, clipped, without the key
	kind       error
}

func (e *StatusError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%v: status %d", e.kind, e.Status)
	}
	return fmt.Sprintf("%v: status %d: %s", e.kind, e.Status, e.Message)
}

// Unwrap returns the sentinel.
func (e *StatusError) Unwrap() error { return e.kind }

// RetryAfter is how long the endpoint asks to wait; false where it does not say.
func RetryAfter(err error) (time.Duration, bool) {
	var s *StatusError
	if errors.As(err, &s) && s.RetryAfter > 0 {
		return s.RetryAfter, true
	}
	return 0, false
}

// mentions reports whether the endpoint's message names one of words.
func (e *StatusError) mentions(words ...string) bool {
	text := strings.ToLower(e.Message)
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// Mentions reports whether err is an answer whose message names one of words, in
// lower case.
func Mentions(err error, words ...string) bool {
	var s *StatusError
	return errors.As(err, &s) && s.mentions(words...)
}
