package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The bounds of an answer and of an error message, in bytes.
const (
	maxAnswer  = 8 << 20
	maxMessage = 300
)

// NewHTTPClient returns the client that providers hand to their SDKs. It turns
// answers that are no success into a [*StatusError], and failures to get an answer
// within timeout into [ErrUnavailable], so that one place tells the errors of all
// wire formats apart. It follows no redirect: the key belongs to one host.
func NewHTTPClient(timeout time.Duration) *http.Client {
	base := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // as net/http documents it
	return &http.Client{
		Transport:     &transport{base: base, timeout: timeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type transport struct {
	base    *http.Transport
	timeout time.Duration
}

// CloseIdleConnections implements what [http.Client] asks for.
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// RoundTrip implements [http.RoundTripper]. It reads the whole answer: one that
// breaks off is an outage too.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), t.timeout)
	defer cancel()
	res, body, err := t.read(req.Clone(ctx))
	if err != nil {
		if cause := req.Context().Err(); cause != nil {
			return nil, cause
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("%w: no answer within %v", ErrUnavailable, t.timeout)
		}
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, newStatusError(res.StatusCode, res.Header, redact(string(body), req.Header))
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

func (t *transport) read(req *http.Request) (*http.Response, []byte, error) {
	res, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end, or given up
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("the answer exceeds %d bytes", maxAnswer)
	}
	return res, body, err
}

// Read is the error of a provider whose SDK returned err: that of the transport,
// that of ctx, or else [ErrMalformed], as the answer came and was not understood.
func Read(ctx context.Context, err error) error {
	var status *StatusError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &status):
		return status // the SDK's wrapping names the whole URL
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrMalformed), errors.Is(err, ErrRefused):
		return err
	}
	return fmt.Errorf("%w: %s", ErrMalformed, clip(err.Error()))
}

func newStatusError(status int, header http.Header, body string) *StatusError {
	e := &StatusError{Status: status, RetryAfter: retryAfter(header, body), Message: clip(message(body))}
	switch {
	case status == http.StatusPaymentRequired,
		e.mentions("insufficient_quota", "credit balance", "billing") && status < 500:
		e.kind = ErrQuota
	case status == http.StatusTooManyRequests:
		e.kind = ErrRateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound,
		e.mentions("api key not valid", "api_key_invalid") && status < 500:
		e.kind = ErrDenied
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status >= 500,
		status < 400: // a redirect or a proxy's page
		e.kind = ErrUnavailable
	default:
		e.kind = ErrInvalid
	}
	return e
}

// messages finds what the endpoints say in their errors: "code" and "type" tell
// apart what has the same status.
var messages = regexp.MustCompile(`"(?:message|code|type|status|error)"\s*:\s*("(?:[^"\\]|\\.)*")`)

func message(body string) string {
	var parts []string
	for _, m := range messages.FindAllStringSubmatch(body, 4) {
		if text, err := strconv.Unquote(m[1]); err == nil && text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return strings.Join(strings.Fields(body), " ")
	}
	return strings.Join(parts, "; ")
}

// retryDelay is how Gemini says how long to wait.
var retryDelay = regexp.MustCompile(`"retryDelay"\s*:\s*"([0-9.]+s)"`)

func retryAfter(header http.Header, body string) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		now, err := http.ParseTime(header.Get("Date")) // the endpoint's clock
		if err != nil {
			now = time.Now()
		}
		return max(at.Sub(now), 0)
	}
	if m := retryDelay.FindStringSubmatch(body); m != nil {
		if d, err := time.ParseDuration(m[1]); err == nil {
			return d
		}
	}
	return 0
}

// keyHeaders hold the key in one wire format or another.
var keyHeaders = []string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key"}

// redact removes the key from a text that may reach a log.
func redact(text string, header http.Header) string {
	for _, name := range keyHeaders {
		key := strings.TrimPrefix(header.Get(name), "Bearer ")
		if len(key) >= 4 {
			text = strings.ReplaceAll(text, key, "xxxxx")
		}
	}
	return text
}

// clip shortens a text at a character.
func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
