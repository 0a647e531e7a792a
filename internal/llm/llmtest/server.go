package llmtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"palimpsest/internal/llm"
)

// Asked is a request as the endpoint read it.
type Asked struct {
	Path      string
	Key       string
	Model     string
	System    string
	User      string
	Mode      llm.Mode
	Name      string // of the schema
	MaxTokens int
	Body      string
}

// Answer is what the endpoint answers.
type Answer struct {
	// Status is that of the answer; 0 means 200.
	Status int
	// Header is added to it.
	Header map[string]string
	// Body replaces the reply in the endpoint's format.
	Body string
	// Text is the reply.
	Text   string
	Refuse bool
	Length bool // the reply is cut off at the bound on its tokens
	// Break closes the connection within the answer, Hang leaves the request
	// without one until the caller goes away.
	Break, Hang           bool
	Input, Cached, Output int
}

// Wire is the format of an endpoint.
type Wire interface {
	// Read understands a request.
	Read(req *http.Request, body []byte) Asked
	// Write returns the body of a reply to it.
	Write(asked Asked, a Answer) string
}

// Server is an endpoint that answers by script.
type Server struct {
	URL string

	mu    sync.Mutex
	asked []Asked
}

// Asked lists the requests so far.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Asked(nil), s.asked...)
}

// Serve starts an endpoint that ends with the test. Script is called for one
// request at a time.
func Serve(t testing.TB, wire Wire, script func(Asked) Answer) *Server {
	t.Helper()
	s := &Server{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the caller went away
		}
		asked := wire.Read(req, body)
		asked.Path, asked.Body = req.URL.String(), string(body)
		s.mu.Lock()
		s.asked = append(s.asked, asked)
		answer := script(asked)
		s.mu.Unlock()
		answer.write(w, req, wire, asked)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

func (a Answer) write(w http.ResponseWriter, req *http.Request, wire Wire, asked Asked) {
	if a.Hang {
		<-req.Context().Done()
		return
	}
	body := a.Body
	if body == "" {
		body = wire.Write(asked, a)
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	if a.Break {
		w.Header().Set("Content-Length", "100000")
		body = body[:len(body)/2]
	}
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	_, _ = io.WriteString(w, body) // the caller may have gone away
}

// bearer is the key of an Authorization header.
func bearer(req *http.Request) string {
	return strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
}
