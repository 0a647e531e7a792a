package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// auditServer answers with lines 1 to have, as far as they are asked for. As
// server-sent events it sends at most two, and then cuts the stream.
type auditServer struct {
	have  int
	asked chan string // queries
	calls atomic.Int32
}

func (s *auditServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	q := r.URL.Query()
	s.asked <- q.Encode()
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(q.Get(name)); err == nil {
			return n
		}
		return otherwise
	}
	follow := r.Header.Get("Accept") == "text/event-stream"
	most := number("limit", s.have)
	if follow {
		w.Header().Set("Content-Type", "text/event-stream")
		most = min(most, 2)
	}
	for n := number("after", 0) + 1; n <= min(number("until", s.have), s.have) && most > 0; n++ {
		text, _ := json.Marshal(auditLineOf(n))
		if follow {
			_, _ = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", n, text)
		} else {
			_, _ = fmt.Fprintf(w, "%s\n", text)
		}
		most--
	}
}

func auditLineOf(n int) api.AuditLine {
	at := time.Date(2026, 3, 1, 12, 0, 0, n, time.UTC)
	return api.AuditLine{
		Sequence: uint64(n), ID: fmt.Sprint("effect-", n), Type: string(events.KindEffectCommitted), Source: "consolidator", Time: at,
		Subject: "/user/alice/", Project: "default", CorrelationID: "c",
		Data: json.RawMessage(`{"scope":{"project":"default","user":"alice"},"committed_at":"` + at.Format(time.RFC3339Nano) + `"}`),
	}
}

func serveAudit(t *testing.T, have int) (*auditServer, string) {
	t.Helper()
	s := &auditServer{have: have, asked: make(chan string, 1000)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections) //nolint:forcetypeassert // it is one
	return s, server.URL
}

func sequencesOf(t *testing.T, out string) (all []uint64) {
	t.Helper()
	for text := range strings.Lines(out) {
		var line api.AuditLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		all = append(all, line.Sequence)
	}
	return all
}

func TestReplayAsksForWhatItIsTold(t *testing.T) {
	t.Parallel()
	s, url := serveAudit(t, 3)
	for args, want := range map[string]string{
		"--all-users":                        "all=true&project=default",
		"--all-users --from 2":               "after=1&all=true&project=default",
		"--all-users --from 2 --to 3":        "after=1&all=true&project=default&until=3",
		"--all-users --after 1":              "after=1&all=true&project=default",
		"--user a --from 2026-03-01":         "from=2026-03-01T00%3A00%3A00Z&project=default&user=a",
		"--user a --to 2026-03-01T12:00:00Z": "project=default&to=2026-03-01T12%3A00%3A00Z&user=a",
		"--user a --agent=":                  "agent=&project=default&user=a",
		"--scope /user/a%2Fb/":               "agent=&project=default&session=&user=a%2Fb",
		"--user a --kind add --kind delete":  "kind=add&kind=delete&project=default&user=a",
		"--user a --where kind='add'":        "filters=%7B%22field%22%3A%22kind%22%2C%22operator%22%3A%22eq%22%2C%22value%22%3A%22add%22%7D&project=default&user=a",
		"--user a --limit 2":                 "limit=2&project=default&user=a",
	} {
		code, _, complaint := callWith(t, "", nil, append([]string{"--server", url, "replay"}, strings.Fields(args)...)...)
		if got := <-s.asked; code != exitOK || got != want {
			t.Errorf("%s: %d %s, asked %s, want %s", args, code, complaint, got, want)
		}
	}
}

func TestReplayRefusals(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--from 0": "begin at 1", "--from soon": "neither", "--to=-1": "neither", "--speed -1": "--speed", "--speed NaN": "--speed", "--speed 1e7": "--speed",
		"--max-pause=-1s": "--max-pause", "--limit=-1": "--limit", "--format xml": "--format", "--kind merge": "--kind", "--follow --to 9": "--to",
		"--scope /user/a/ --user b": "--scope", "--scope /user/a/ --all-users": "--scope", "--after 3 --from 4": "--after", "--from 5 --to 2": "--to lies before",
		"--from 2026-03-02 --to 2026-03-01": "--to lies before",
	} {
		if code, _, complaint := callWith(t, "", nil, append([]string{"replay"}, strings.Fields(args)...)...); code != exitUsage || !strings.Contains(complaint, want) {
			t.Errorf("%s: %d %s", args, code, complaint)
		}
	}
	if code, _, complaint := callWith(t, "", nil, "replay", "--all-users", "--where", "text = 'x'"); code != exitError || !strings.Contains(complaint, `--where: at character 1: unknown field "text"`) {
		t.Errorf("%d %s", code, complaint)
	}
	if code, _, complaint := callWith(t, "", nil, "replay", "--scope", "alice"); code != exitError || !strings.Contains(complaint, "--scope") {
		t.Errorf("%d %s", code, complaint)
	}
}

// A paced replay reads page after page, and loses nothing between them.
func TestReplayPaced(t *testing.T) {
	t.Parallel()
	s, url := serveAudit(t, 2*pageSize+5)
	code, out, complaint := callWith(t, "", nil, "--server", url, "replay", "--all-users", "--from", "3", "--speed", "1000")
	if got := sequencesOf(t, out); code != exitOK || len(got) != 2*pageSize+3 || got[0] != 3 || got[len(got)-1] != 2*pageSize+5 {
		t.Errorf("%d %s: %d lines", code, complaint, len(got))
	}
	if n := s.calls.Load(); n != 3 {
		t.Errorf("%d pages, want 3", n)
	}
	code, out, _ = callWith(t, "", nil, "--server", url, "replay", "--all-users", "--speed", "1000", "--limit", "70")
	if got := sequencesOf(t, out); code != exitOK || len(got) != 70 {
		t.Errorf("%d: %d lines, want 70", code, len(got))
	}
}

// A stream that breaks is taken up behind the last line, until the limit or the
// user ends it.
func TestReplayFollows(t *testing.T) {
	t.Parallel()
	_, url := serveAudit(t, 5)
	code, out, complaint := callWith(t, "", nil, "--server", url, "replay", "--all-users", "-f", "--limit", "5")
	if diff := cmp.Diff([]uint64{1, 2, 3, 4, 5}, sequencesOf(t, out)); diff != "" || code != exitOK || !strings.Contains(complaint, "after 2") {
		t.Errorf("%d %s: %s", code, complaint, diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var got bytes.Buffer
	code = run(ctx, []string{"--server", url, "replay", "--all-users", "-f", "--after", "4"}, terminal.Terminal{In: strings.NewReader(""), Out: &got, Err: writerFunc(func(b []byte) (int, error) {
		cancel()
		return len(b), nil
	})})
	if diff := cmp.Diff([]uint64{5}, sequencesOf(t, got.String())); diff != "" || code != exitOK {
		t.Errorf("interrupted: %d %s", code, diff)
	}
	if code, _, complaint := callWith(t, "", nil, "--server", "127.0.0.1:1", "replay", "--all-users", "-f"); code != exitError || strings.Contains(complaint, "again") {
		t.Errorf("a server that is not there: %d %s", code, complaint)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestReplayInterrupted: an interrupted replay prints the sequence to resume from.
func TestReplayInterrupted(t *testing.T) {
	t.Parallel()
	_, url := serveAudit(t, 5)
	ctx, cancel := context.WithCancel(t.Context())
	var complaint bytes.Buffer
	n := 0
	code := run(ctx, []string{"--server", url, "replay", "--all-users", "--speed", "1e-9", "--max-pause", "1h"}, terminal.Terminal{
		In: strings.NewReader(""), Err: &complaint,
		Out: writerFunc(func(b []byte) (int, error) {
			n++
			cancel()
			return len(b), nil
		}),
	})
	if code != exitError || n != 1 || !strings.Contains(complaint.String(), "--after 1") {
		t.Errorf("%d after %d lines: %s", code, n, complaint.String())
	}
}

func TestReplayOfCloudEvents(t *testing.T) {
	t.Parallel()
	_, url := serveAudit(t, 2)
	code, out, complaint := callWith(t, "", nil, "--server", url, "replay", "--all-users", "--format", "cloudevents")
	if code != exitOK || strings.Count(out, "\n") != 2 {
		t.Fatalf("%d %s: %s", code, complaint, out)
	}
	line, _, _ := strings.Cut(out, "\n")
	subject := "palimpsest.audit." + scope.Scope{Project: "default", User: "alice"}.Tokens()
	meta, data, err := events.Decode(events.Raw{
		Subject: subject, Header: map[string][]string{"Content-Type": {"application/cloudevents+json"}}, Body: []byte(line), Sequence: 1,
	})
	want := auditLineOf(1)
	if err != nil || meta.ID != want.ID || meta.Kind != events.KindEffectCommitted || !meta.Time.Equal(want.Time) || !bytes.Equal(data, want.Data) {
		t.Errorf("%v: %+v %s", err, meta, data)
	}
}

func FuzzPoint(f *testing.F) {
	for _, s := range []string{"1", "0", "007", "18446744073709551616", "2026-01-02", "2026-01-02T03:04:05.6Z", "", "-1", "0001-01-01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p point
		if p.UnmarshalText([]byte(text)) != nil {
			return
		}
		if (p.sequence == 0) == p.at.IsZero() {
			t.Errorf("%q is %+v: neither or both", text, p)
		}
	})
}
