package query

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/httpserver"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.journal.commit(committed(1), committed(2))
	next := 3
	for line, err := range r.client.Replay(t.Context(), scope.Selector{User: ptr("nora")}, client.ReplayAudit{After: 10, Follow: true}) {
		if err != nil || line.Sequence != uint64(10*(next-1)) {
			t.Fatalf("%+v, %v", line, err)
		}
		if next > 5 {
			break
		}
		r.journal.commit(committed(next))
		next++
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, err := range r.client.Replay(ctx, everyone, client.ReplayAudit{After: 40, Follow: true}) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		cancel()
	}
	cancel()
	r.journal.mu.Lock()
	r.journal.failAt = 1
	r.journal.mu.Unlock()
	if got, err := r.replayed(t.Context(), client.ReplayAudit{Follow: true}); err == nil || errors.Is(err, client.ErrEnded) {
		t.Errorf("a stream that fails: %v, %v", got, err)
	}
}

// follow opens the stream as a browser does.
func (r *rig) follow(t *testing.T, query string, headers ...string) *bufio.Scanner {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/v1/audit?all=true&"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html, text/event-stream;q=0.9")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("status %d, %s", res.StatusCode, got)
	}
	return bufio.NewScanner(res.Body)
}

func TestFollowAsABrowser(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config, _ *Deps) { c.Heartbeat = time.Millisecond })
	r.journal.commit(committed(1), committed(2), committed(3))
	lines := r.follow(t, "after=10&limit=1", "Last-Event-ID", "20")
	var got []string
	for lines.Scan() {
		if text, _, _ := strings.Cut(lines.Text(), `,"id"`); text != "" && text != ":" {
			got = append(got, text)
		}
	}
	want := []string{"retry: 2000", "id: 30", `data: {"sequence":30`, "event: end", `data: {"sequence":30}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	beats := r.follow(t, "after=30")
	for n := 0; n < 3 && beats.Scan(); {
		if beats.Text() == ":" {
			n++
		}
	}
	if err := beats.Err(); err != nil {
		t.Error(err)
	}
}

func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.service
	full := func(remote string) (leave []func()) {
		for {
			l, most := s.followers.enter(remote)
			if l == nil {
				if most == 0 {
					t.Fatal("refused without a reason")
				}
				return leave
			}
			leave = append(leave, l)
		}
	}
	if n := len(full("one who takes what there is")); n != maxOfOne {
		t.Fatalf("one address has %d places", n)
	}
	others := full("another")
	a := r.do(http.MethodGet, "/v1/audit?all=true", "", "Accept", "text/event-stream")
	if p := a.problem(t); p.Status != http.StatusTooManyRequests || p.Code != api.CodeRateLimited || a.header.Get("Retry-After") == "" {
		t.Errorf("%+v", p)
	}
	if a := r.do(http.MethodGet, "/v1/audit?all=true", ""); a.status != 200 {
		t.Errorf("a replay that ends is refused: %d", a.status)
	}
	others[0]()
	for range 3 { // each gives its place back
		if got, err := r.replayed(t.Context(), client.ReplayAudit{Follow: true, Until: 1}); err != nil || len(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// A server that stops does not wait for those who follow.
func TestFollowEndsWithTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.journal.commit(committed(1))
	config := httpserver.DefaultConfig()
	config.Listen, config.Drain = "127.0.0.1:0", time.Hour
	server, err := httpserver.Listen(config, r.service.Handler(), r.service.deps.Logger)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c, err := client.New(server.URL(), client.HTTP(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	for line, err := range c.Replay(t.Context(), everyone, client.ReplayAudit{Follow: true}) {
		if err == nil && line.Sequence == 10 {
			stop()
			continue
		}
		if !errors.Is(err, client.ErrEnded) {
			t.Errorf("%+v, %v; want ErrEnded", line, err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSlowFollower checks that a client that does not read only has a few events
// read ahead for it, and delays no other client.
func TestSlowFollower(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	address, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil { //nolint:forcetypeassert // it is one
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /v1/audit?all=true HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	big := committed(1)
	big.Data.Facts[0].Text = strings.Repeat("x", 256<<10)
	const n = 64
	for i := range n {
		e := big
		e.Sequence = uint64(i + 1)
		r.journal.commit(e)
	}
	read := func() int {
		r.journal.mu.Lock()
		defer r.journal.mu.Unlock()
		return r.journal.handed
	}
	got, err := r.replayed(t.Context(), client.ReplayAudit{Until: n, Follow: true})
	if err != nil || len(got) != n {
		t.Errorf("beside it: %d events, %v", len(got), err)
	}
	if handed := read() - n; handed > n/2 {
		t.Errorf("%d events were read for a client that reads none", handed)
	}
}
