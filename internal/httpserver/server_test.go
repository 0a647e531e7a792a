package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/pkg/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func local() Config {
	c := DefaultConfig()
	c.Listen, c.Drain = "127.0.0.1:0", 5*time.Second
	return c
}

// buffer is a log that many may write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// served is a running server; stop begins its stop, and done is closed at its
// end.
type served struct {
	url  string
	stop context.CancelFunc
	done chan error
	logs *buffer
}

func serve(t *testing.T, config Config, handle http.HandlerFunc) *served {
	t.Helper()
	logs := &buffer{}
	s, err := Listen(config, handle, slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	out := &served{url: s.URL(), stop: stop, done: make(chan error, 1), logs: logs}
	go func() { out.done <- s.Serve(ctx); close(out.done) }()
	t.Cleanup(func() { stop(); <-out.done })
	return out
}

func (s *served) send(t *testing.T, method, path string, body io.Reader) (int, http.Header, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, string(text), err
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	first, err := Listen(local(), http.NotFoundHandler(), slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	c := local()
	c.Listen = strings.TrimPrefix(first.URL(), "http://")
	if _, err = Listen(c, http.NotFoundHandler(), slog.Default()); err == nil || !strings.Contains(err.Error(), c.Listen) {
		t.Errorf("error %v", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"listen": func(c *Config) { c.Listen = "8080" }, "body": func(c *Config) { c.MaxBody = 0 },
		"read": func(c *Config) { c.ReadTimeout = -1 }, "drain": func(c *Config) { c.Drain = 0 },
		"hosts": func(c *Config) { c.Hosts = []string{"Memory.example:443"} },
	} {
		c := local()
		change(&c)
		if _, err := Listen(c, http.NotFoundHandler(), slog.Default()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestDrainLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, local(), func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		select {
		case <-leave:
			_, _ = io.WriteString(w, "whole")
		case <-r.Context().Done():
		}
	})
	got := make(chan string, 1)
	go func() {
		_, _, text, err := s.send(t, http.MethodGet, "/", nil)
		if err != nil {
			text = err.Error()
		}
		got <- text
	}()
	<-entered
	s.stop()
	for { // until connections are refused
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	close(leave)
	if text := <-got; text != "whole" {
		t.Errorf("answer %q", text)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

func TestDrainCancelsWhoWaitsTooLong(t *testing.T) {
	t.Parallel()
	c := local()
	c.Drain = 10 * time.Millisecond
	entered := make(chan struct{})
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		w.WriteHeader(http.StatusAccepted)
	})
	got := make(chan int, 1)
	go func() {
		status, _, _, _ := s.send(t, http.MethodGet, "/", nil)
		got <- status
	}()
	<-entered
	s.stop()
	if status := <-got; status != http.StatusAccepted {
		t.Errorf("status %d", status)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

// An answer without an end costs the drain no time.
func TestAnswersAreToldOfTheStop(t *testing.T) {
	t.Parallel()
	c := local()
	c.Drain = time.Hour
	entered := make(chan struct{})
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-Stopping(r.Context())
		_, _ = io.WriteString(w, "the end")
	})
	got := make(chan string, 1)
	go func() {
		_, _, text, _ := s.send(t, http.MethodGet, "/", nil)
		got <- text
	}()
	<-entered
	s.stop()
	if text := <-got; text != "the end" {
		t.Errorf("answer %q", text)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	if Stopping(t.Context()) != nil {
		t.Error("a context of no server stops")
	}
}

func TestServeFails(t *testing.T) {
	t.Parallel()
	s, err := Listen(local(), http.NotFoundHandler(), slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if err := s.Serve(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	s := serve(t, local(), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			_, _ = io.WriteString(w, "half")
		}
		panic("oops")
	})
	status, header, text, err := s.send(t, http.MethodGet, "/early?q=secret", nil)
	var p api.Problem
	if err != nil || status != 500 || json.Unmarshal([]byte(text), &p) != nil || p.Code != api.CodeInternal ||
		header.Get("Content-Type") != "application/problem+json" || strings.Contains(text, "oops") {
		t.Errorf("%d %v %s, %v", status, header, text, err)
	}
	if _, _, text, err = s.send(t, http.MethodGet, "/late", nil); err == nil {
		t.Errorf("half an answer passes for whole: %q", text)
	}
	logs := s.logs.String()
	if !strings.Contains(logs, "panic=oops") || !strings.Contains(logs, "server_test.go") || strings.Contains(logs, "secret") {
		t.Errorf("logs: %s", logs)
	}
}

func TestAbort(t *testing.T) {
	t.Parallel()
	s := serve(t, local(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, _, _, err := s.send(t, http.MethodGet, "/", nil); err == nil {
		t.Error("an aborted answer arrives")
	}
	if strings.Contains(s.logs.String(), "panicked") {
		t.Errorf("logs: %s", s.logs)
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	c := local()
	c.MaxBody = 10
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		var size *http.MaxBytesError
		if errors.As(err, &size) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	})
	for body, want := range map[string]int{strings.Repeat("x", 10): 200, strings.Repeat("x", 11): 413, "": 200} {
		if status, _, _, err := s.send(t, http.MethodPost, "/", strings.NewReader(body)); err != nil || status != want {
			t.Errorf("%d bytes: %d, %v", len(body), status, err)
		}
	}
}

// A compressed body is named as the cause, and reaches no handler.
func TestCompressedBody(t *testing.T) {
	t.Parallel()
	s := serve(t, local(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for coding, want := range map[string]int{"gzip": http.StatusUnsupportedMediaType, "Identity": http.StatusNoContent, "": http.StatusNoContent} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Encoding", coding)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != want || want != http.StatusNoContent && !strings.Contains(string(answer), "Content-Encoding") {
			t.Errorf("%q: %d %s, %v", coding, res.StatusCode, answer, err)
		}
	}
}

// A handler may take longer than its request may take to arrive.
func TestReadTimeoutDoesNotCancelHandlers(t *testing.T) {
	t.Parallel()
	c := local()
	c.ReadTimeout = 20 * time.Millisecond
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusGone)
		case <-time.After(10 * c.ReadTimeout):
		}
	})
	for _, body := range []io.Reader{nil, strings.NewReader("body")} {
		if status, _, _, err := s.send(t, http.MethodPost, "/", body); err != nil || status != 200 {
			t.Errorf("%d, %v", status, err)
		}
	}
}

func TestSlowBody(t *testing.T) {
	t.Parallel()
	c := local()
	c.ReadTimeout = 20 * time.Millisecond
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})
	body, write := io.Pipe()
	defer write.Close()
	status, _, _, err := s.send(t, http.MethodPost, "/", body)
	if err == nil && status != http.StatusRequestTimeout {
		t.Errorf("status %d", status)
	}
}
