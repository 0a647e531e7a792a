package pipeline

import (
	"errors"
	"fmt"
	"time"
)

// ErrFull: the stream has no room for the message. It passes.
var ErrFull = errors.New("pipeline: the stream is full")

// rejected marks an error as permanent: the same input will always fail.
type rejected struct {
	code, field string
	err         error
}

func (r *rejected) Error() string { return r.err.Error() }
func (r *rejected) Unwrap() error { return r.err }

// Reject marks err as permanent: the same input will always fail. The message
// goes to the dead letters with code (one of the events.Code constants) and the
// offending field, empty where there is none. A [*events.FieldError] that a
// handler returns is a Reject without being wrapped.
func Reject(code, field string, err error) error {
	return &rejected{code: code, field: field, err: err}
}

// Rejectf is [Reject] with a formatted reason.
func Rejectf(code, field, format string, args ...any) error {
	return Reject(code, field, fmt.Errorf(format, args...))
}

// IsRefused reports whether err is permanent: a message whose handler returned it is
// buried.
func IsRefused(err error) bool {
	_, refused := refusal(err)
	return refused
}

// delayed marks an error as the reason to wait: nothing has failed.
type delayed struct {
	after time.Duration
	err   error
}

func (d *delayed) Error() string { return d.err.Error() }
func (d *delayed) Unwrap() error { return d.err }

// Later gives the message back to the stream, to be delivered again after about
// that long. It is not a failure: however often a handler returns it, the
// message is not buried for it.
func Later(after time.Duration, err error) error { return &delayed{after: after, err: err} }

// Postponed returns how long a [Later] asks to wait.
func Postponed(err error) (after time.Duration, ok bool) {
	var d *delayed
	if !errors.As(err, &d) {
		return 0, false
	}
	return d.after, true
}
