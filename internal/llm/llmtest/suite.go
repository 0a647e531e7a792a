package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/llm"
)

// Key is the key that providers under test use.
const Key = "key-that-must-not-leak"

// patience bounds a call of a provider that is not to wait.
const patience = time.Minute

// Provider is a provider under test.
type Provider struct {
	Wire Wire
	// Open returns the provider for the endpoint at url, with [Key] and a bound on
	// the time of a call.
	Open func(url string, timeout time.Duration) (llm.Provider, error)
}

var question = llm.Request{
	System: "List the birds.", User: "A heron and a wren.", Name: "birds", MaxTokens: 300,
	Schema: json.RawMessage(`{"type":"object","properties":{"birds":{"type":"array","items":{"type":"object"}}},"required":["birds"],"additionalProperties":false}`),
}

const birds = `{"birds":[{"name":"heron"},{"name":"wren"}]}`

// RunAll holds a provider to the contract.
func RunAll(t *testing.T, p Provider) {
	t.Helper()
	for name, test := range map[string]func(Provider, *testing.T){
		"Reply":     Provider.reply,
		"Readings":  Provider.readings,
		"Errors":    Provider.errors,
		"Slow":      Provider.slow,
		"Cancelled": Provider.cancelled,
		"Broken":    Provider.broken,
		"Once":      Provider.once,
		"Ladder":    Provider.ladder,
		"Secret":    Provider.secret,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(p, t)
		})
	}
}

func (p Provider) model(t *testing.T, url string, timeout time.Duration) llm.Model {
	t.Helper()
	provider, err := p.Open(url, timeout)
	if err != nil {
		t.Fatal(err)
	}
	m, err := llm.New(provider, "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ask puts the question to an endpoint that gives one answer.
func (p Provider) ask(t *testing.T, a Answer) (llm.Reply, error) {
	t.Helper()
	s := Serve(t, p.Wire, func(Asked) Answer { return a })
	return p.model(t, s.URL, patience).Complete(t.Context(), question)
}

func (p Provider) reply(t *testing.T) {
	s := Serve(t, p.Wire, func(Asked) Answer { return Answer{Text: birds, Input: 1000, Cached: 600, Output: 20} })
	m := p.model(t, s.URL, patience)
	got, err := m.Complete(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Reply{Text: birds, InputTokens: 1000, CachedTokens: 600, OutputTokens: 20, Finish: llm.FinishStop}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	asked := s.Asked()[0]
	if asked.System != question.System || asked.User != question.User || asked.Key != Key || asked.Model != m.Info().Model || asked.MaxTokens != 300 {
		t.Errorf("the endpoint was asked %+v", asked)
	}
	if asked.Mode == llm.ModePlain || !strings.Contains(asked.Body, "additionalProperties") {
		t.Errorf("the endpoint was asked without the schema: %s", asked.Body)
	}
	words := question
	words.Schema = nil
	if _, err := m.Complete(t.Context(), words); err != nil || s.Asked()[1].Mode != llm.ModePlain {
		t.Errorf("a question without a schema: %v, asked in mode %s", err, s.Asked()[1].Mode)
	}
}

// readings are replies as models write them, however they were asked.
func (p Provider) readings(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		length  bool
		names   []string
		partial bool
	}{
		"fenced":    {text: "```json\n" + birds + "\n```", names: []string{"heron", "wren"}},
		"prose":     {text: "Here are the birds [1]:\n" + birds + "\nAnything else?", names: []string{"heron", "wren"}},
		"bare list": {text: `[{"name":"heron"},{"name":"wren"}]`, names: []string{"heron", "wren"}},
		"truncated": {text: birds[:len(birds)-9], length: true, names: []string{"heron"}, partial: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply, err := p.ask(t, Answer{Text: c.text, Length: c.length})
			if err != nil {
				t.Fatal(err)
			}
			if (reply.Finish == llm.FinishLength) != c.length {
				t.Errorf("finish %q", reply.Finish)
			}
			r, err := llm.Items(reply.Text, "birds")
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, item := range r.Items {
				var bird struct{ Name string }
				if err := json.Unmarshal(item, &bird); err != nil {
					t.Fatal(err)
				}
				names = append(names, bird.Name)
			}
			if !cmp.Equal(names, c.names) || r.Partial != c.partial {
				t.Errorf("read %v, partial %v", names, r.Partial)
			}
		})
	}
}

func (p Provider) errors(t *testing.T) {
	for name, c := range map[string]struct {
		answer Answer
		want   error
		after  time.Duration
	}{
		"rate":       {Answer{Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{"error":{"message":"slow down","type":"requests"}}`}, llm.ErrRateLimited, 7 * time.Second},
		"rate, date": {Answer{Status: 429, Header: map[string]string{"Date": "Mon, 02 Jan 2006 15:04:05 GMT", "Retry-After": "Mon, 02 Jan 2006 15:04:35 GMT"}, Body: `{}`}, llm.ErrRateLimited, 30 * time.Second},
		"rate, body": {Answer{Status: 429, Body: `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"3.5s"}]}}`}, llm.ErrRateLimited, 3500 * time.Millisecond},
		"payment":    {Answer{Status: 402, Body: `{"error":{"message":"pay"}}`}, llm.ErrQuota, 0},
		"quota":      {Answer{Status: 429, Body: `{"error":{"message":"You exceeded it","code":"insufficient_quota"}}`}, llm.ErrQuota, 0},
		"server":     {Answer{Status: 500, Body: `{"error":{"message":"oh"}}`}, llm.ErrUnavailable, 0},
		"overloaded": {Answer{Status: 529, Header: map[string]string{"Retry-After": "2"}, Body: `overloaded`}, llm.ErrUnavailable, 2 * time.Second},
		"gateway":    {Answer{Status: 502, Header: map[string]string{"Content-Type": "text/html"}, Body: `<html>bad gateway</html>`}, llm.ErrUnavailable, 0},
		"redirect":   {Answer{Status: 302, Header: map[string]string{"Location": "http://127.0.0.1:1/"}, Body: `moved`}, llm.ErrUnavailable, 0},
		"key":        {Answer{Status: 401, Body: `{"error":{"message":"no"}}`}, llm.ErrDenied, 0},
		"model":      {Answer{Status: 404, Body: `{"error":{"message":"no such model"}}`}, llm.ErrDenied, 0},
		"invalid":    {Answer{Status: 400, Body: `{"error":{"message":"too long"}}`}, llm.ErrInvalid, 0},
		"refusal":    {Answer{Refuse: true, Input: 9, Output: 3}, llm.ErrRefused, 0},
		"empty":      {Answer{Text: "", Input: 9, Output: 3}, llm.ErrMalformed, 0},
		"garbage":    {Answer{Body: "\x00\x01 not json", Header: map[string]string{"Content-Type": "application/json"}}, llm.ErrMalformed, 0},
		"page":       {Answer{Body: "<html>sign in</html>", Header: map[string]string{"Content-Type": "text/html"}}, llm.ErrMalformed, 0},
		"nothing":    {Answer{Body: `{}`}, llm.ErrMalformed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply, err := p.ask(t, c.answer)
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if after, _ := llm.RetryAfter(err); after != c.after {
				t.Errorf("retry after %v, want %v", after, c.after)
			}
			if reply.InputTokens != c.answer.Input || reply.OutputTokens != c.answer.Output {
				t.Errorf("spent %+v", reply)
			}
		})
	}
}

func (p Provider) slow(t *testing.T) {
	s := Serve(t, p.Wire, func(Asked) Answer { return Answer{Hang: true} })
	if _, err := p.model(t, s.URL, 20*time.Millisecond).Complete(t.Context(), question); !errors.Is(err, llm.ErrUnavailable) {
		t.Errorf("error %v, want %v", err, llm.ErrUnavailable)
	}
}

func (p Provider) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := Serve(t, p.Wire, func(Asked) Answer { cancel(); return Answer{Hang: true} })
	if _, err := p.model(t, s.URL, patience).Complete(ctx, question); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func (p Provider) broken(t *testing.T) {
	if _, err := p.ask(t, Answer{Text: birds, Break: true}); !errors.Is(err, llm.ErrUnavailable) {
		t.Errorf("an answer that breaks off: %v, want %v", err, llm.ErrUnavailable)
	}
	s := Serve(t, p.Wire, func(Asked) Answer { return Answer{} })
	m := p.model(t, strings.Replace(s.URL, "127.0.0.1", "127.0.0.2", 1), patience) // no server listens there
	if _, err := m.Complete(t.Context(), question); !errors.Is(err, llm.ErrUnavailable) {
		t.Errorf("no endpoint: %v, want %v", err, llm.ErrUnavailable)
	}
}

// once: a provider does not retry. The governor does, and counts the calls.
func (p Provider) once(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusRequestTimeout, http.StatusConflict} {
		s := Serve(t, p.Wire, func(Asked) Answer { return Answer{Status: status, Body: `{}`} })
		if _, err := p.model(t, s.URL, patience).Complete(t.Context(), question); err == nil {
			t.Errorf("status %d is no error", status)
		}
		if n := len(s.Asked()); n != 1 {
			t.Errorf("status %d was asked for %d times", status, n)
		}
	}
}

// ladder: an endpoint that takes no schema is asked in another way, from then on at
// once.
func (p Provider) ladder(t *testing.T) {
	s := Serve(t, p.Wire, func(a Asked) Answer {
		if a.Mode != llm.ModePlain {
			return Answer{Status: 400, Body: `{"error":{"message":"no such parameter"}}`}
		}
		return Answer{Text: birds}
	})
	m := p.model(t, s.URL, patience)
	for range 2 {
		if _, err := m.Complete(t.Context(), question); err != nil {
			t.Fatal(err)
		}
	}
	asked := s.Asked()
	last, before := asked[len(asked)-1], asked[len(asked)-2]
	if last.Mode != llm.ModePlain || before.Mode != llm.ModePlain || len(asked) > 4 {
		t.Errorf("asked %d times, at last in mode %s after %s", len(asked), last.Mode, before.Mode)
	}
	if !strings.Contains(last.System, `"required"`) {
		t.Error("a plain question does not describe the schema")
	}
}

func (p Provider) secret(t *testing.T) {
	_, err := p.ask(t, Answer{Status: 401, Body: `{"error":{"message":"wrong key ` + Key + `"}}`})
	if err == nil || strings.Contains(err.Error(), Key) {
		t.Errorf("the error shows the key: %v", err)
	}
}
