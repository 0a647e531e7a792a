package e2e

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/llm/llmtest"
	"palimpsest/pkg/events"
)

// failing is a model that answers 429 for a while from its first call on, then some
// 500s, then some garbage, and then as it should.
type failing struct {
	limited time.Duration
	each    int // calls of the second and third kind

	mu    sync.Mutex
	until time.Time
	calls map[string]int
}

func (f *failing) answer(asked llmtest.Asked) llmtest.Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.until, f.calls = time.Now().Add(f.limited), map[string]int{}
	}
	for _, phase := range []struct {
		name   string
		on     bool
		answer llmtest.Answer
	}{
		{"limited", time.Now().Before(f.until), llmtest.Answer{Status: http.StatusTooManyRequests, Body: `{"error":{"message":"slow down"}}`}},
		{"broken", f.calls["broken"] < f.each, llmtest.Answer{Status: http.StatusInternalServerError, Body: `{"error":{"message":"broken"}}`}},
		{"garbage", f.calls["garbage"] < f.each, llmtest.Answer{Text: "As a language model I", Input: 100, Output: 5}},
	} {
		if phase.on {
			f.calls[phase.name]++
			return phase.answer
		}
	}
	f.calls["right"]++
	return understand(asked)
}

func (f *failing) so(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[kind]
}

// TestP7ModelOutageDrill: sessions end while the model is limited, broken and talking
// nonsense. Rule packs go on meanwhile, calls are few, and in the end the model has read
// each session once. With E2E_FULL there are 200 sessions and 60 s of 429.
func TestP7ModelOutageDrill(t *testing.T) {
	t.Parallel()
	sessions, f := 20, &failing{limited: 3 * time.Second, each: 3}
	if os.Getenv("E2E_FULL") != "" {
		sessions, f.limited = 200, time.Minute
	}
	i, _ := withModel(t, "openai", llmtest.OpenAI, f.answer)
	for n := range sessions {
		who := person(fmt.Sprint("user", n))
		i.say(who, "I live in Oslo.", "My heart beats for chess.")
		i.envelope(fmt.Sprint("end", n), events.SessionEnded{Scope: who, Cause: events.EndExplicit})
	}
	i.settled(i.whole(), 2*sessions)
	if n := len(i.factsWith(i.whole(), "Oslo")); n != sessions {
		t.Errorf("while the model is away rule packs find %d of %d", n, sessions)
	}
	if n := f.so("right"); n > 0 {
		t.Errorf("the model answered %d times before rule packs were done", n)
	}
	i.settledBy("sleep", i.whole(), 2*sessions)
	if f.so("limited") == 0 || f.so("broken") != f.each || f.so("garbage") != f.each {
		t.Errorf("calls %v", f.calls)
	}
	// One call after each pause, which grows to 200 ms, and those that were under way.
	if most := int(f.limited/(200*time.Millisecond)) + 40; f.so("limited") > most {
		t.Errorf("%d calls were made while the model was limited, want at most %d", f.so("limited"), most)
	}
	if n, most := f.so("right"), 2*sessions; n < sessions || n > most {
		t.Errorf("%d calls were answered, want %d to %d", n, sessions, most)
	}
	for _, words := range []string{"Oslo", "chess"} {
		if n := len(i.factsWith(i.whole(), words)); n != sessions {
			t.Errorf("%d facts have %s, want one of each of %d users", n, words, sessions)
		}
	}
	if letters := i.buried(0); len(letters) > 0 {
		t.Errorf("%d dead letters, the first: %+v", len(letters), letters[0])
	}
	t.Logf("%d sessions; calls %v", sessions, f.calls)
}
