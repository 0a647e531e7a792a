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
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// committed is the i-th effect, committed i minutes after noon, at which time
// AUDIT took it.
func committed(i int) events.Event[events.EffectCommitted] {
	e := effect(i)
	e.Data.CommittedAt = noon.Add(time.Duration(i) * time.Minute)
	e.Arrived = e.Data.CommittedAt
	e.Kind, e.Source, e.CorrelationID = events.KindEffectCommitted, "consolidator", fmt.Sprint("request", i)
	return e
}

func (r *rig) replayed(ctx context.Context, q client.ReplayAudit) (got []uint64, err error) {
	for line, err := range r.client.Replay(ctx, scope.Selector{}, q) {
		if err != nil {
			return got, err
		}
		got = append(got, line.Sequence)
	}
	return got, nil
}

func TestReplayIsNarrowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 6; i++ {
		r.journal.commit(committed(i))
	}
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Minute) }
	for name, tc := range map[string]struct {
		q    client.ReplayAudit
		want []uint64
	}{
		"until":        {client.ReplayAudit{Until: 30}, []uint64{10, 20, 30}},
		"until, exact": {client.ReplayAudit{After: 10, Until: 29}, []uint64{20}},
		"from":         {client.ReplayAudit{From: at(5)}, []uint64{50, 60}},
		"to":           {client.ReplayAudit{To: at(3)}, []uint64{10, 20}},
		"both":         {client.ReplayAudit{From: at(2), To: at(2).Add(1)}, []uint64{20}},
		"never":        {client.ReplayAudit{From: at(3), To: at(2)}, nil},
		"kind":         {client.ReplayAudit{Kinds: []string{"add"}}, []uint64{10}},
		"kinds":        {client.ReplayAudit{Kinds: []string{"add", "update"}, After: 40}, []uint64{50, 60}},
		"no kind":      {client.ReplayAudit{Kinds: []string{"delete", "noop"}}, nil},
		"limit":        {client.ReplayAudit{From: at(2), Limit: 2}, []uint64{20, 30}},
		"followed":     {client.ReplayAudit{Follow: true, Until: 30}, []uint64{10, 20, 30}},
		"followed to":  {client.ReplayAudit{Follow: true, To: at(2)}, []uint64{10}},
	} {
		got, err := r.replayed(t.Context(), tc.q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for line := range r.client.Audit(t.Context(), scope.Selector{}, 0) {
		want := api.AuditLine{
			Sequence: 10, ID: "effect1", Type: string(events.KindEffectCommitted), Source: "consolidator", Time: noon,
			Project: "default", Subject: nora.Key(), CorrelationID: "request1", Data: line.Data,
		}
		if diff := cmp.Diff(want, line); diff != "" {
			t.Error(diff)
		}
		break
	}
}

// A replay by time begins an hour early, for clocks differ, and leaves nothing
// out that it finds there.
func TestReplayGoesByTheCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 6; i++ {
		e := committed(i)
		e.Arrived = noon.Add(time.Duration(i-3) * time.Hour) // 20 arrived an hour before
		r.journal.commit(e)
	}
	got, err := r.replayed(t.Context(), client.ReplayAudit{From: noon, To: noon.Add(4 * time.Minute)})
	if diff := cmp.Diff([]uint64{20, 30}, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	if r.journal.asked != 10 {
		t.Errorf("read behind %d, want 10", r.journal.asked)
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for query, field := range map[string]string{
		"after=x": "after", "after=-1": "after", "until=1.5": "until", "from=yesterday": "from", "to=2026-13-01": "to", "kind=merge": "kind", "limit=-1": "limit",
	} {
		for _, accept := range []string{"*/*", "text/event-stream"} {
			p := r.do(http.MethodGet, "/v1/audit?"+query, "", "Accept", accept).problem(t)
			if p.Status != 400 && p.Status != 422 || !strings.HasPrefix(p.Field, field) {
				t.Errorf("%s: %+v", query, p)
			}
		}
	}
	if p := r.do(http.MethodGet, "/v1/audit", "", "Last-Event-ID", "seven").problem(t); p.Field != "Last-Event-ID" {
		t.Errorf("%+v", p)
	}
}

// What AUDIT has dropped comes from the audit log, if that has it all.
func TestReplayOfWhatWasTrimmed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 6; i++ {
		r.journal.commit(committed(i))
		if i <= 3 {
			e := committed(i)
			e.Arrived = time.Time{}
			r.log.effects = append(r.log.effects, e)
		}
	}
	r.journal.begin = 31
	r.log.last = 30
	for _, tc := range []struct {
		q    client.ReplayAudit
		want []uint64
	}{
		{client.ReplayAudit{}, []uint64{10, 20, 30, 40, 50, 60}},
		{client.ReplayAudit{After: 10, Until: 40}, []uint64{20, 30, 40}},
		{client.ReplayAudit{From: noon.Add(2 * time.Minute), Limit: 3}, []uint64{20, 30, 40}},
		{client.ReplayAudit{After: 30}, []uint64{40, 50, 60}},
		{client.ReplayAudit{After: 50, Until: 60, Follow: true}, []uint64{60}},
	} {
		got, err := r.replayed(t.Context(), tc.q)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%+v: %v (-want +got):\n%s", tc.q, err, diff)
		}
	}
	r.log.last = 20
	for _, follow := range []bool{false, true} {
		_, err := r.replayed(t.Context(), client.ReplayAudit{After: 10, Follow: follow})
		var p *api.Problem
		if !errors.As(err, &p) || p.Status != http.StatusGone || p.Code != api.CodeTrimmed || !strings.Contains(p.Detail, "after=30") {
			t.Errorf("%v", err)
		}
		if got, err := r.replayed(t.Context(), client.ReplayAudit{After: 30, Until: 60, Follow: follow}); err != nil || len(got) != 3 {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// TestReplayWhileMoreIsTrimmed: what AUDIT drops while the log is read comes from
// the log too, or the replay ends there; it leaves nothing out.
func TestReplayWhileMoreIsTrimmed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 6; i++ {
		r.journal.commit(committed(i))
		r.log.effects = append(r.log.effects, committed(i))
	}
	r.journal.begin, r.log.last = 21, 60
	trim := func() { r.journal.trim(41) }
	r.log.read = trim
	got, err := r.replayed(t.Context(), client.ReplayAudit{})
	if diff := cmp.Diff([]uint64{10, 20, 30, 40, 50, 60}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	r.journal.begin, r.log.last = 21, 20
	if got, err = r.replayed(t.Context(), client.ReplayAudit{}); err == nil || len(got) > 2 {
		t.Errorf("with a log that lacks some: %v, %v", got, err)
	}
}

// TestReplayIsOvertaken: what AUDIT drops in front of a reader comes from the log,
// and the reader goes on in AUDIT. Where the log lacks it, who follows is told
// what happened and where to resume, and a replay does not look whole.
func TestReplayIsOvertaken(t *testing.T) {
	t.Parallel()
	for _, follow := range []bool{false, true} {
		r := newRig(t)
		for i := 1; i <= 6; i++ {
			r.journal.commit(committed(i))
			r.log.effects = append(r.log.effects, committed(i))
		}
		r.journal.trimmed, r.log.last = map[uint64]uint64{20: 41}, 60
		got, err := r.replayed(t.Context(), client.ReplayAudit{Follow: follow, Limit: 6})
		if diff := cmp.Diff([]uint64{10, 20, 30, 40, 50, 60}, got); diff != "" || err != nil {
			t.Errorf("follow %v: %v (-want +got):\n%s", follow, err, diff)
		}
		r.journal.trim(1)
		r.log.last = 20
		got, err = r.replayed(t.Context(), client.ReplayAudit{Follow: follow, Limit: 6})
		if diff := cmp.Diff([]uint64{10, 20}, got); diff != "" && follow || err == nil {
			t.Errorf("follow %v, and the log lacks it: %v (-want +got):\n%s", follow, err, diff)
		}
		var p *api.Problem
		if follow && (!errors.As(err, &p) || p.Code != api.CodeTrimmed || !strings.Contains(p.Detail, "after=40")) {
			t.Errorf("who follows is told %v", err)
		}
	}
}

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
	for _, err := range r.client.Replay(ctx, scope.Selector{}, client.ReplayAudit{After: 40, Follow: true}) {
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
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/v1/audit?"+query, http.NoBody)
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
	a := r.do(http.MethodGet, "/v1/audit", "", "Accept", "text/event-stream")
	if p := a.problem(t); p.Status != http.StatusTooManyRequests || p.Code != api.CodeRateLimited || a.header.Get("Retry-After") == "" {
		t.Errorf("%+v", p)
	}
	if a := r.do(http.MethodGet, "/v1/audit", ""); a.status != 200 {
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
	for line, err := range c.Replay(t.Context(), scope.Selector{}, client.ReplayAudit{Follow: true}) {
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

// A client that does not read is waited for, while nothing is read ahead for it
// beyond a few events, and nobody else waits.
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
	if _, err := fmt.Fprintf(conn, "GET /v1/audit HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
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
