package mcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pkg/api"
)

var quiet = slog.New(slog.DiscardHandler)

// patience bounds what must come about in the end.
const patience = 30 * time.Second

func receive(t testing.TB, from <-chan error) error {
	t.Helper()
	select {
	case err := <-from:
		return err
	case <-time.After(patience):
		t.Fatalf("nothing within %v", patience)
		return nil
	}
}

// dial connects the SDK's client to a server of native at an address with query.
func dial(t testing.TB, native http.HandlerFunc, query string) (*sdk.ClientSession, error) {
	t.Helper()
	server := httptest.NewServer(http.MaxBytesHandler(Handler(native, "test", quiet), 1<<20))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: server.URL + "/mcp" + query, HTTPClient: &http.Client{Transport: transport}}, nil)
}

func TestHTTPDefaults(t *testing.T) {
	t.Parallel()
	var got string
	c, err := dial(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.String() + " " + string(body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"status":"done"}`)
	}, "?project=p&user=ada%2Fl%20%F0%9F%A6%8A&agent=claude&session=s")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if text, failed := call(t, c, "remember_fact", object{"text": "x"}); failed || text != `{"status":"done"}` {
		t.Errorf("answer %s", text)
	}
	const want = `POST http://localhost/v1/facts?project=p {"user":"ada/l 🦊","agent":"claude","session":"s","text":"x"}`
	if got != want {
		t.Errorf("asks %s", got)
	}
	if text, failed := call(t, c, "confirm_fact", object{"id": "../a/b?c 🦊"}); failed {
		t.Errorf("answer %s", text)
	}
	if want := "POST http://localhost/v1/facts/..%2Fa%2Fb%3Fc%20%F0%9F%A6%8A/confirm?project=p "; got != want {
		t.Errorf("asks %s", got)
	}
}

func TestHTTPRefuses(t *testing.T) {
	t.Parallel()
	handler := http.MaxBytesHandler(Handler(http.NotFoundHandler(), "test", quiet), 1<<10)
	for _, tc := range []struct {
		method, query, body string
		status              int
	}{
		{http.MethodPost, "?usr=nora", "{}", 400},
		{http.MethodPost, "?user=nora&user=bob", "{}", 400},
		{http.MethodPost, "?user=%zz", "{}", 400},
		{http.MethodPost, "", "{oops", 400},
		{http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 2<<10) + `"}`, 413},
		{http.MethodGet, "", "", 405},
		{http.MethodDelete, "", "", 405},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, "/mcp"+tc.query, strings.NewReader(tc.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != tc.status {
			t.Errorf("%s %s %.20s: %d %s", tc.method, tc.query, tc.body, w.Code, w.Body)
		}
	}
}

// TestACallEndsWithItsRequest checks that a call to the API is cancelled when its
// client disconnects and when the server stops.
func TestACallEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	native := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leave()
		select {
		case <-r.Context().Done():
			ended <- r.Context().Err()
		case <-time.After(patience):
			ended <- errors.New("the call goes on")
		}
	})
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"confirm_fact","arguments":{"id":"f"}}}`
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	Handler(native, "test", quiet).ServeHTTP(httptest.NewRecorder(), r)
	if err := receive(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// pipes connect a client to [Serve].
type pipes struct {
	*sdk.IOTransport

	served chan error
}

func stdio(ctx context.Context) pipes {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	p := pipes{&sdk.IOTransport{Reader: fromServer, Writer: toServer}, make(chan error, 1)}
	go func() {
		err := Serve(ctx, &fakeMemory{}, Config{Version: "test", Default: api.Scope{User: "nora"}, Log: quiet}, in, out)
		_, _ = in.Close(), out.Close()
		p.served <- err
	}()
	return p
}

func TestStdio(t *testing.T) {
	t.Parallel()
	p := stdio(t.Context())
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, failed := call(t, c, "search_memory", object{"query": "x"}); failed || !strings.Contains(text, "Oslo") {
		t.Errorf("answer %s", text)
	}
	if got := c.InitializeResult(); got == nil || !strings.Contains(got.Instructions, `"nora"`) {
		t.Errorf("initialize answers %+v", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := receive(t, p.served); err != nil {
		t.Errorf("served: %v", err)
	}
}

func TestStdioEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := stdio(ctx)
	cancel()
	if err := receive(t, p.served); err != nil {
		t.Errorf("cancelled: %v", err)
	}
	_ = p.Writer.Close()
	p = stdio(t.Context())
	_, _ = io.WriteString(p.Writer, `{"x":"`)
	_, _ = io.Copy(p.Writer, io.LimitReader(zeros{}, maxLine)) // it fails once the server has had enough
	if err := receive(t, p.served); err == nil {
		t.Error("a line without an end is accepted")
	}
}

// zeros is an endless text of the digit 0.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// BenchmarkInitialize is the whole of a connection: the handshake of both sides.
func BenchmarkInitialize(b *testing.B) {
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	b.Run("stdio", func(b *testing.B) {
		for b.Loop() {
			p := stdio(b.Context())
			c, err := client.Connect(b.Context(), p, nil)
			if err != nil {
				b.Fatal(err)
			}
			_ = c.Close()
			_ = receive(b, p.served)
		}
	})
	b.Run("http", func(b *testing.B) {
		server := httptest.NewServer(Handler(http.NotFoundHandler(), "test", quiet))
		defer server.Close()
		for b.Loop() {
			c, err := client.Connect(b.Context(), &sdk.StreamableClientTransport{Endpoint: server.URL}, nil)
			if err != nil {
				b.Fatal(err)
			}
			_ = c.Close()
		}
	})
}
