package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/embedtest"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/embed/openai"
	"palimpsest/internal/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is one that an endpoint read.
type request struct {
	Model      string
	Input      []string
	Dimensions int
	key, path  string
}

// endpoint answers with the vectors of the local embedder, last text first, unless a
// script answers in its place.
type endpoint struct {
	url    string
	script func(w http.ResponseWriter, r *http.Request) bool

	mu    sync.Mutex
	asked []request
}

func serve(t *testing.T, script func(w http.ResponseWriter, r *http.Request) bool) *endpoint {
	t.Helper()
	e := &endpoint{script: script}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	e.url = server.URL + "/v1"
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller went away
	}
	req := request{key: r.Header.Get("Authorization"), path: r.URL.Path}
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.asked = append(e.asked, req)
	e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if e.script != nil && e.script(w, r) {
		return
	}
	vectors, err := local.New().Embed(r.Context(), req.Input)
	if err != nil {
		return
	}
	data := []map[string]any{}
	for i := len(vectors) - 1; i >= 0; i-- {
		for k := range vectors[i] {
			vectors[i][k] *= 3 // the answer is not normalised
		}
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": vectors[i]})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}

func (e *endpoint) requests() []request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]request(nil), e.asked...)
}

func open(t *testing.T, cfg openai.Config) *openai.Embedder {
	t.Helper()
	if cfg.Model == "" {
		cfg.Model = "nomic-embed-text"
	}
	if cfg.Dimensions == 0 {
		cfg.Dimensions = local.New().Info().Dimensions
	}
	e, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEmbedder(t *testing.T) {
	t.Parallel()
	at := serve(t, nil)
	embedtest.RunAll(t, func(t *testing.T) embed.Embedder { return open(t, openai.Config{BaseURL: at.url, Batch: 3}) },
		embedtest.Options{Inexact: "numbers travel as decimals"})
}

// TestRequests: texts are sent in batches, empty ones not at all.
func TestRequests(t *testing.T) {
	t.Parallel()
	at := serve(t, nil)
	e := open(t, openai.Config{BaseURL: at.url + "/", Model: "text-embedding-3-small", Key: "secret", Batch: 2})
	vectors, err := e.Embed(t.Context(), []string{"one", "", "two", " ", "three"})
	if err != nil || len(vectors) != 5 || vectors[1][0] != 0 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	want := []request{
		{"text-embedding-3-small", []string{"one", "two"}, 256, "Bearer secret", "/v1/embeddings"},
		{"text-embedding-3-small", []string{"three"}, 256, "Bearer secret", "/v1/embeddings"},
	}
	if got := at.requests(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("requests %v, want %v", got, want)
	}
	other := serve(t, nil)
	if _, err := open(t, openai.Config{BaseURL: other.url}).Embed(t.Context(), []string{"one"}); err != nil || other.requests()[0].Dimensions != 0 {
		t.Errorf("%v; asked %v, want no dimensions for a model that takes none", err, other.requests())
	}
}

// TestErrors checks which errors are temporary, which are refusals, and which are
// neither.
func TestErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		body    string
		want    error
		refused bool
	}{
		"rate":       {429, `{"error":{"message":"slow down"}}`, llm.ErrRateLimited, false},
		"quota":      {429, `{"error":{"code":"insufficient_quota"}}`, llm.ErrQuota, false},
		"down":       {500, `oops`, llm.ErrUnavailable, false},
		"key":        {401, `{"error":{"message":"bad key"}}`, llm.ErrDenied, false},
		"too long":   {400, `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`, llm.ErrInvalid, true},
		"too large":  {413, `{"error":"input is too large"}`, llm.ErrInvalid, true},
		"parameter":  {400, `{"error":{"message":"unknown parameter dimensions"}}`, llm.ErrInvalid, false},
		"not JSON":   {200, `<html>`, llm.ErrMalformed, false},
		"dimensions": {200, `{"data":[{"index":0,"embedding":[1,0]}]}`, llm.ErrMalformed, false},
		"too few":    {200, `{"data":[]}`, llm.ErrMalformed, false},
		"index":      {200, `{"data":[{"index":7,"embedding":[1,0]}]}`, llm.ErrMalformed, false},
	} {
		at := serve(t, func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
			return true
		})
		_, err := open(t, openai.Config{BaseURL: at.url, Key: "secret"}).Embed(t.Context(), []string{"a text"})
		if !errors.Is(err, c.want) || errors.Is(err, embed.ErrRefused) != c.refused {
			t.Errorf("%s: %v; want %v, refused %v", name, err, c.want, c.refused)
		}
		if n := len(at.requests()); n != 1 {
			t.Errorf("%s: %d requests, want no retry", name, n)
		}
	}
}

// TestRetryAfter: the endpoint is left alone for as long as it asks.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	limited := true
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) bool {
		if limited {
			w.Header().Set("Retry-After", "20")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return limited
	})
	e := open(t, openai.Config{BaseURL: at.url, Now: func() time.Time { return now }})
	for _, step := range []struct {
		later    time.Duration
		limited  bool
		requests int
		want     error
	}{
		{0, true, 1, llm.ErrRateLimited},
		{19 * time.Second, false, 1, llm.ErrRateLimited},
		{time.Second, false, 2, nil},
	} {
		now, limited = now.Add(step.later), step.limited
		if _, err := e.Embed(t.Context(), []string{"a text"}); !errors.Is(err, step.want) || len(at.requests()) != step.requests {
			t.Errorf("at %v: %v, %d requests; want %v, %d", now, err, len(at.requests()), step.want, step.requests)
		}
	}
}

// TestSlow: an endpoint that does not answer is an outage, and a caller that gives up is
// not.
func TestSlow(t *testing.T) {
	t.Parallel()
	came := make(chan struct{}, 1)
	at := serve(t, func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case came <- struct{}{}:
		default:
		}
		<-r.Context().Done()
		return true
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-came
		cancel()
	}()
	_, err := open(t, openai.Config{BaseURL: at.url}).Embed(ctx, []string{"a text"})
	if !errors.Is(err, context.Canceled) || errors.Is(err, llm.ErrUnavailable) {
		t.Errorf("the caller gave up: %v", err)
	}
	// The request may or may not reach the endpoint in so short a time.
	_, err = open(t, openai.Config{BaseURL: at.url, Timeout: 20 * time.Millisecond}).Embed(t.Context(), []string{"a text"})
	if !errors.Is(err, llm.ErrUnavailable) {
		t.Errorf("no answer in time: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, cfg := range []openai.Config{
		{Model: "m"}, {Dimensions: 3}, {Model: "m", Dimensions: 3, BaseURL: "localhost"},
	} {
		if _, err := openai.New(cfg); err == nil || !strings.HasPrefix(err.Error(), "openai: ") {
			t.Errorf("New(%+v) = %v", cfg, err)
		}
	}
}
