package redis

import (
	"strings"
	"testing"
)

// TestATextOfTheProcessItselfIsNotReadAgain, unless it is long.
func TestATextOfTheProcessItselfIsNotReadAgain(t *testing.T) {
	t.Parallel()
	s := openNew(t, countedConfig(t))
	embeds := func(n int) {
		t.Helper()
		if got := embedPending(t, s, 16); got != n {
			t.Fatalf("%d texts are pending, want %d", got, n)
		}
	}
	tell(t, s, "1", "hello")
	embeds(1)
	sent := &counts{sent: map[string]int{}}
	addHook(s, sent)
	tell(t, s, "2", "hello again")
	embeds(1)
	if n := sent.sent["HMGET"]; n != 0 {
		t.Errorf("read %d times", n)
	}
	tell(t, s, "3", strings.Repeat("long ", maxFreshText/5+1))
	embeds(1)
	if n := sent.sent["HMGET"]; n != 1 {
		t.Errorf("a long text was read %d times, want 1", n)
	}
}

// TestFreshTextsAreBounded, and there are none in a process that does not embed.
func TestFreshTextsAreBounded(t *testing.T) {
	t.Parallel()
	var f freshTexts
	queued := []queuedText{{entry: "a"}}
	f.note(queued)
	if _, ok := f.Take("a"); ok {
		t.Error("a process that does not embed remembers texts")
	}
	f.embeds.Store(true)
	for i := range maxFresh + 10 {
		queued[0].entry = strings.Repeat("x", i)
		f.note(queued)
	}
	n := 0
	for i := range maxFresh + 10 {
		if _, ok := f.Get(strings.Repeat("x", i)); ok {
			n++
		}
	}
	if n == 0 || n > maxFresh {
		t.Errorf("%d texts are remembered, want at most %d", n, maxFresh)
	}
}
