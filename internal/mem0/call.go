package mem0

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"palimpsest/internal/httpserver"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
)

// call is one request and a client of the native API that ends with it.
type call struct {
	*http.Request
	*client.Client
}

func (s *server) handler(do action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		native, err := client.New("http://localhost",
			client.Project(r.URL.Query().Get("project")),
			client.HTTP(&http.Client{Transport: httpserver.Inside(r.Context(), s.native)}))
		var body any
		if err == nil {
			body, err = do(&call{r, native})
		}
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		answer(w, http.StatusOK, body)
	})
}

// answer writes a body, which every answer has: mem0's clients decode it always.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has gone
}

// failure is an error with its HTTP status.
type failure struct {
	status int
	detail string
}

func (f *failure) Error() string { return f.detail }

func invalid(format string, args ...any) error {
	return &failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

var (
	errNotFound = &failure{http.StatusNotFound, "Memory not found!"}
	errNoEntity = &failure{http.StatusBadRequest, "At least one of user_id, agent_id, app_id and run_id is required."}
	errAbsent   = &failure{http.StatusNotImplemented, "Palimpsest does not offer this route; docs/mem0.md lists the differences."}
)

// absent answers routes whose clients exist and whose work does not.
func absent(*call) (any, error) { return nil, errAbsent }

// refuse answers with an error in the members that mem0's clients read.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, detail := http.StatusInternalServerError, "the request could not be answered"
	var f *failure
	var p *api.Problem
	switch {
	case errors.As(err, &f):
		status, detail = f.status, f.detail
	case errors.As(err, &p):
		status, detail = p.Status, p.Detail
		if p.Code == api.CodeNotFound {
			detail = errNotFound.detail
		} else if p.Field != "" {
			detail = p.Field + ": " + detail
		}
	case r.Context().Err() != nil:
		return
	default:
		s.log.ErrorContext(r.Context(), "mem0: request failed", "method", r.Method, "error", err)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, status, map[string]string{"detail": detail, "error": detail})
}

// body decodes the request into v. Unknown members are ignored, as mem0's
// clients need.
func (c *call) body(v any) error {
	text, err := io.ReadAll(c.Body)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return &failure{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", large.Limit)}
		}
		return invalid("the body did not arrive whole")
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	var refused *events.FieldError
	if err := events.Unmarshal(text, v); errors.As(err, &refused) {
		return invalid("the body cannot be read: %s %s", refused.Field, refused.Reason)
	} else if err != nil {
		return invalid("the body cannot be read: %v", err)
	}
	return nil
}
