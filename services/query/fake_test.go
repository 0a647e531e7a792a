package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/auth"
	"palimpsest/internal/embed"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/rules"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var errDown = errors.New("backend at 10.0.0.7 is down")

// noon is the clock of every test.
var noon = time.Date(2026, 4, 2, 12, 0, 0, 0, time.UTC)

// everyone selects the whole project.
var everyone = scope.Selector{All: true}

var nora = scope.Scope{Project: "default", User: "nora", Agent: "assistant"}

type sent struct {
	meta events.Meta
	p    events.Payload
}

// fakePublisher keeps what is published; hook, where set, stands for the
// pipeline behind it.
type fakePublisher struct {
	mu   sync.Mutex
	all  []sent
	hook func(ctx context.Context, m events.Meta, p events.Payload) error
}

func (f *fakePublisher) Publish(ctx context.Context, m events.Meta, p events.Payload) (sequence uint64, err error) {
	if _, _, _, err := events.Encode(events.Meta{ID: "x", Source: m.Source}, p); err != nil {
		return 0, err
	}
	f.mu.Lock()
	hook := f.hook
	f.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, m, p); err != nil {
			return 0, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, sent{m, p})
	return uint64(len(f.all)), nil
}

func (f *fakePublisher) sent() []sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]sent(nil), f.all...)
}

// fakeListener hands out one channel per correlation id and counts who listens.
type fakeListener struct {
	mu        sync.Mutex
	err       error
	listeners map[string]chan events.Outcome
	open      int
	asked     int
}

func (f *fakeListener) Listen(_ context.Context, correlation string) (<-chan events.Outcome, func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, nil, f.err
	}
	if f.listeners == nil {
		f.listeners = map[string]chan events.Outcome{}
	}
	c := make(chan events.Outcome, 4)
	f.listeners[correlation] = c
	f.open++
	f.asked++
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.open--
	}, nil
}

func (f *fakeListener) announce(o events.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.listeners[o.CorrelationID]; ok {
		c <- o
	}
}

func (f *fakeListener) listening() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

type fakeLetters struct {
	deadLetters []pipeline.Letter
	did         []string
	asked       pipeline.LetterFilter
	err         error // of a retry
}

func (f *fakeLetters) List(_ context.Context, q pipeline.LetterFilter, after uint64, limit int) ([]pipeline.Letter, uint64, error) {
	f.asked = q
	var out []pipeline.Letter
	for _, l := range f.deadLetters {
		if l.Sequence > after && (q.Project == "" || q.Project == l.Scope.Project) && (q.Code == "" || q.Code == l.Code) {
			out = append(out, l)
		}
		if len(out) == limit {
			return out, l.Sequence, nil
		}
	}
	return out, 0, nil
}

func (f *fakeLetters) Show(_ context.Context, sequence uint64) (pipeline.Letter, error) {
	for _, l := range f.deadLetters {
		if l.Sequence == sequence {
			return l, nil
		}
	}
	return pipeline.Letter{}, pipeline.ErrNoLetter
}

func (f *fakeLetters) Retry(context.Context, uint64) error {
	f.did = append(f.did, "retry")
	return f.err
}

func (f *fakeLetters) Drop(context.Context, uint64) error {
	f.did = append(f.did, "drop")
	return nil
}

// fakeEmbedder counts its calls, which recording must not make.
type fakeEmbedder struct {
	mu    sync.Mutex
	calls int
	err   error
}

func (f *fakeEmbedder) Info() embed.Info { return embed.Info{Name: "fake", Dimensions: 2} }

func (f *fakeEmbedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return make([][]float32, len(texts)), f.err
}

// rig is a service on fakes, served over HTTP.
type rig struct {
	service     *Service
	t           *testing.T
	url         string
	client      *client.Client
	store       *fakeStore
	publisher   *fakePublisher
	listener    *fakeListener
	journal     *fakeJournal
	log         *fakeLog
	deadLetters *fakeLetters
	embedder    *fakeEmbedder
	ready       *api.Readiness
	logs        *buffer
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

func newRig(t *testing.T, change ...func(*Config, *Deps)) *rig {
	t.Helper()
	r := &rig{
		t: t, store: newFakeStore(), publisher: &fakePublisher{}, listener: &fakeListener{},
		journal: newFakeJournal(), log: &fakeLog{}, deadLetters: &fakeLetters{}, embedder: &fakeEmbedder{},
		ready: &api.Readiness{Ready: true, Checks: map[string]api.Check{"store": {OK: true}}}, logs: &buffer{},
	}
	config := DefaultConfig()
	config.Search.Fusion, config.Search.Vector = retrieval.FusionRRF, 0.5 // its hits need no text
	config.Wait, config.MaxWait, config.Fresh = 5*time.Second, 10*time.Second, 20*time.Millisecond
	deps := Deps{
		Store: r.store, Searcher: r.store, Embedders: embed.Only(r.embedder), Journal: r.journal, Log: r.log, Publisher: r.publisher,
		Listener: r.listener, Letters: r.deadLetters, Rules: rules.Shipped(), Version: "test", Now: func() time.Time { return noon },
		Gate:    &auth.Gate{Mode: auth.Off},
		Ready:   func(context.Context) api.Readiness { return *r.ready },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "palimpsest_up 1\n") }),
		Logger:  slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		c(&config, &deps)
	}
	s, err := New(config, deps)
	if err != nil {
		t.Fatal(err)
	}
	r.service = s
	server := httptest.NewServer(http.MaxBytesHandler(s.Handler(), 1<<20))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections) // some answers have no end
	r.url = server.URL
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	if r.client, err = client.New(server.URL, client.HTTP(&http.Client{Transport: transport})); err != nil {
		t.Fatal(err)
	}
	return r
}

// answer is a response, read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request; headers come in pairs.
func (r *rig) do(method, path, body string, headers ...string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, bytes.NewBufferString(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req) // follows no redirect
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

// problem reads an answer that must be a problem document.
func (a answer) problem(t *testing.T) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("no problem document: %d %s", a.status, a.body)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q", got)
	}
	if p.Status != a.status || p.Type != "urn:palimpsest:problem:"+p.Code || p.Title == "" {
		t.Errorf("status %d, problem %+v", a.status, p)
	}
	return p
}

// into reads an answer of that status.
func into[T any](t *testing.T, a answer, status int) T {
	t.Helper()
	var v T
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return v
}

func ptr[T any](v T) *T { return &v }
