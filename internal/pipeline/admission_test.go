package pipeline

import (
	"errors"
	"testing"
	"time"

	"palimpsest/pkg/events"
)

// TestBacklogRefusesCallers: past either bound a caller's episode is refused, and
// nothing else is; a reader that catches up lets callers in again.
func TestBacklogRefusesCallers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard(pinned)
	ahead := time.Duration(0)
	look := func(most int, age time.Duration) error {
		l := &admission{js: b.js, now: func() time.Time { return time.Now().Add(ahead) }, most: most, age: age}
		return l.admit(b.context(), events.EpisodeSubject(user("ann")))
	}
	if err := look(1, time.Nanosecond); err != nil {
		t.Errorf("with nothing said: %v", err)
	}
	for _, id := range []string{"one", "two", "three"} {
		b.say(user("ann"), id)
	}
	b.eventually("the consumer knows of them", func() bool { return errors.Is(look(3, time.Hour), ErrBacklog) })
	if err := look(4, time.Hour); err != nil {
		t.Errorf("below the bound: %v", err)
	}
	ahead = 2 * time.Hour
	if err := look(4, time.Hour); !errors.Is(err, ErrBacklog) {
		t.Errorf("what waits for two hours: %v", err)
	}

	cfg := quickConfig()
	cfg.Backlog = 3
	rt := b.runtime(cfg, b.js, b.conn)
	if _, err := rt.Publisher().Publish(b.context(), events.Meta{Source: "app"}, said(user("ann"), "four")); !errors.Is(err, ErrBacklog) {
		t.Errorf("a caller's episode: %v", err)
	}
	end := events.SessionEnded{Scope: user("ann"), Cause: events.EndExplicit}
	if _, err := rt.Publisher().Publish(b.context(), events.Meta{Source: "app"}, end); err != nil {
		t.Errorf("an end: %v", err)
	}
}

// TestBacklogIsTrustedForAWhile: a flood of callers asks the server once.
func TestBacklogIsTrustedForAWhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard(pinned)
	l := &admission{js: b.js, now: time.Now, most: 1, age: time.Hour}
	subject := events.EpisodeSubject(user("ann"))
	if err := l.admit(b.context(), subject); err != nil {
		t.Fatal(err)
	}
	b.say(user("ann"), "one")
	l.again = time.Now().Add(backlogFor)
	if err := l.admit(b.context(), subject); err != nil {
		t.Errorf("looked again at once: %v", err)
	}
	b.eventually("it is looked at again", func() bool { return errors.Is(l.admit(b.context(), subject), ErrBacklog) })
}
