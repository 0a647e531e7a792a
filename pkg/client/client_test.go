package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial returns a client of a server that answers with handle.
func dial(t *testing.T, handle http.HandlerFunc, options ...client.Option) *client.Client {
	t.Helper()
	server := httptest.NewServer(handle)
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); server.Close() })
	c, err := client.New(server.URL+"/", append(options, client.HTTP(&http.Client{Transport: transport}))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNewRefusesAddresses(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "127.0.0.1:8080", "ftp://host", "http://", "http://a b", "nats://host:4222"} {
		if _, err := client.New(base); err == nil {
			t.Errorf("%q is accepted", base)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	c := dial(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		p := api.NewProblem(409, api.CodeFactConflict, "If-Match", "f is at revision 5")
		p.Current = &api.Fact{ID: "f", Revision: 5}
		_ = json.NewEncoder(w).Encode(p)
	})
	_, err := c.Delete(t.Context(), "f", 3)
	var p *api.Problem
	if !errors.As(err, &p) || p.Status != 409 || p.Field != "If-Match" || p.Current.Revision != 5 {
		t.Fatalf("error %v", err)
	}
	if got, want := err.Error(), "fact_conflict: If-Match: f is at revision 5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOtherErrors(t *testing.T) {
	t.Parallel()
	c := dial(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("a proxy's page ", 1000), http.StatusBadGateway)
	})
	_, err := c.Fact(t.Context(), "f", 0)
	if err == nil || !strings.Contains(err.Error(), "GET /v1/facts/f: 502 Bad Gateway: a proxy's page") || len(err.Error()) > 1000 {
		t.Errorf("error %v", err)
	}
	c = dial(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	if _, err = c.Fact(t.Context(), "f", 0); err == nil || !strings.Contains(err.Error(), "decode answer of GET /v1/facts/f") {
		t.Errorf("error %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	c, err := client.New("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Search(t.Context(), api.Search{Text: "secret"})
	if err == nil || !strings.HasPrefix(err.Error(), "reach "+address+": ") || strings.Count(err.Error(), "/v1/search") > 0 {
		t.Errorf("error %v", err)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	c := dial(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(entered)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	if _, err := c.Record(ctx, api.Record{}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := c.Record(late, api.Record{}, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	var got string
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.EscapedPath() + "?" + r.URL.RawQuery
		for _, name := range []string{"If-Match", "Idempotency-Key"} {
			if v := r.Header.Get(name); v != "" {
				got += " " + name + "=" + v
			}
		}
		got += " " + string(body)
		_, _ = io.WriteString(w, "{}")
	}, client.Project("p q"))
	nora, none := "nora", ""
	sel := scope.Selector{Project: "another", User: &nora, Agent: &none}
	for _, tc := range []struct {
		want string
		call func() error
	}{
		{"GET /v1/episodes?agent=&at=w&cursor=c&limit=5&project=p+q&user=nora ", func() error {
			_, err := c.Recent(t.Context(), sel, client.ListEpisodes{Limit: 5, Cursor: "c", At: "w"})
			return err
		}},
		{"GET /v1/facts?agent=&at=w&closed=true&project=p+q&user=nora ", func() error {
			_, err := c.Facts(t.Context(), sel, client.ListFacts{Closed: true, At: "w"})
			return err
		}},
		{"GET /v1/facts/a%2Fb%3F?project=p+q&revision=2 ", func() error { _, err := c.Fact(t.Context(), "a/b?", 2); return err }},
		{"GET /v1/facts/%2E%2E/history?project=p+q ", func() error { _, err := c.History(t.Context(), ".."); return err }},
		{"GET /v1/facts/f/explain?project=p+q ", func() error { _, err := c.Explain(t.Context(), "f"); return err }},
		{`POST /v1/facts?project=p+q Idempotency-Key=k {"user":"nora","text":"x"}`, func() error {
			_, err := c.Remember(t.Context(), api.Remember{Scope: api.Scope{User: nora}, Text: "x"}, "k")
			return err
		}},
		{`POST /v1/facts/f/correct?project=p+q If-Match="3" {"text":"x"}`, func() error {
			_, err := c.Correct(t.Context(), "f", 3, api.Correct{Text: "x"})
			return err
		}},
		{"POST /v1/facts/f/confirm?project=p+q ", func() error { _, err := c.Confirm(t.Context(), "f", 0); return err }},
		{"POST /v1/facts/f/restore?project=p+q ", func() error { _, err := c.Restore(t.Context(), "f", 0); return err }},
		{"DELETE /v1/facts/f?project=p+q ", func() error { _, err := c.Delete(t.Context(), "f", 0); return err }},
		{"DELETE /v1/scopes?agent=&project=p+q&user=nora Idempotency-Key=k ", func() error { _, err := c.DeleteScope(t.Context(), sel, "k"); return err }},
		{`POST /v1/sessions/a%2F%25/end?project=p+q {"session":"a/%","cause":"timeout"}`, func() error {
			_, err := c.EndSession(t.Context(), api.Scope{Session: "a/%"}, "timeout")
			return err
		}},
		{"GET /v1/ledger?accounts=true&all=true&project=p+q ", func() error {
			_, err := c.Ledger(t.Context(), scope.Selector{All: true}, true)
			return err
		}},
		{"GET /v1/digest?content=true ", func() error { _, err := c.Digest(t.Context(), true); return err }},
		{"GET /v1/reports? ", func() error { _, err := c.Reports(t.Context()); return err }},
		{"GET /v1/deadletters?after=7&code=poison&limit=2&project=p+q&service=decider&user=nora ", func() error {
			_, err := c.DeadLetters(t.Context(), client.ListLetters{Service: "decider", Code: "poison", User: "nora", After: 7, Limit: 2})
			return err
		}},
		{"POST /v1/deadletters/7/retry?project=p+q ", func() error { _, err := c.RetryDeadLetter(t.Context(), 7); return err }},
	} {
		if err := tc.call(); err != nil {
			t.Errorf("%s: %v", tc.want, err)
		}
		if got != tc.want {
			t.Errorf("sent %q, want %q", got, tc.want)
		}
	}
}

func TestEmptyIdentifiers(t *testing.T) {
	t.Parallel()
	c := dial(t, func(http.ResponseWriter, *http.Request) { t.Error("it is sent") })
	for name, call := range map[string]func() error{
		"fact":    func() error { _, err := c.Fact(t.Context(), "", 0); return err },
		"history": func() error { _, err := c.History(t.Context(), ""); return err },
		"delete":  func() error { _, err := c.Delete(t.Context(), "", 0); return err },
		"session": func() error { _, err := c.EndSession(t.Context(), api.Scope{User: "a"}, ""); return err },
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("after") {
		case "":
			_, _ = io.WriteString(w, "{\"sequence\":1}\n{\"sequence\":2}\n")
		case "5":
			_, _ = io.WriteString(w, "{\"sequence\":6}\n{oops\n")
		default:
			_, _ = io.WriteString(w, "{\"sequence\":8}\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	for _, tc := range []struct {
		after  uint64
		want   []uint64
		failed bool
	}{{0, []uint64{1, 2}, false}, {5, []uint64{6}, true}, {7, []uint64{8}, true}} {
		var got []uint64
		failed := false
		for line, err := range c.Audit(t.Context(), scope.Selector{}, tc.after) {
			if err != nil {
				failed = true
				continue
			}
			got = append(got, line.Sequence)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || failed != tc.failed {
			t.Errorf("after %d: failed %v (-want +got):\n%s", tc.after, failed, diff)
		}
	}
}
