package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/cursor"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// fileCursors keeps one cursor in a file, for processes that are killed.
type fileCursors struct {
	fakeCursors
	path string
}

func (f *fileCursors) ReadCursors(context.Context, ...string) ([]cursor.Cursor, error) {
	var c cursor.Cursor
	body, err := os.ReadFile(f.path)
	if os.IsNotExist(err) {
		return []cursor.Cursor{c}, nil
	}
	_, scan := fmt.Sscan(string(body), &c.Stream, &c.Sequence, &c.Starts, &c.Alone, &c.Deaths)
	return []cursor.Cursor{c}, errors.Join(err, scan)
}

func (f *fileCursors) SetCursor(_ context.Context, _ string, _ uint64, c cursor.Cursor) error {
	text := fmt.Sprintln(c.Stream, c.Sequence, c.Starts, c.Alone, c.Deaths)
	next := f.path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.path)
}

// logEnv names the file of the cursor of a child that reads a log.
const logEnv = "PIPELINE_TEST_LOG_CURSOR"

// logDies has a child die of something else, a while after its start.
const logDies = "PIPELINE_TEST_LOG_DIES"

// logChild reads EPISODES until a message kills it, or its parent does.
func logChild() {
	dies := os.Getenv(logDies) != ""
	if dies {
		time.AfterFunc(suspectPause/2, func() { os.Exit(killed) })
	}
	conn, err := nats.Connect(os.Getenv(crashEnv))
	if err != nil {
		os.Exit(2)
	}
	js, _ := jetstream.New(conn)
	rt, err := New(quickConfig(), Deps{JS: js, Conn: conn})
	if err != nil {
		os.Exit(2)
	}
	cursors := &fileCursors{path: os.Getenv(logEnv)}
	_ = rt.Run(context.Background(), service{name: "worker", stages: []Stage{ReadLog(Log{
		Name: "log", Stream: "EPISODES", Partitions: []Partition{{Reader: "reader", Filter: "palimpsest.episodes.>"}},
		Cursors: cursors, Shares: cursors,
		Handle: func(ctx context.Context, in []*Entry) error {
			for _, e := range in {
				switch text := string(e.Data); {
				case strings.Contains(text, "slow") && dies:
					<-ctx.Done()
				case strings.Contains(text, "deadly"):
					os.Exit(killed)
				case strings.Contains(text, "failing"):
					e.Err = errors.New("its server is away")
				}
			}
			return nil
		},
	})}})
	os.Exit(0)
}

// TestP8LogMessageThatKillsTheProcess: the reader finds the message by handling the
// unfinished ones one by one, buries it and no other, and goes on.
func TestP8LogMessageThatKillsTheProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	for i := range 40 {
		text := "harmless"
		if i == 17 {
			text = "deadly"
		}
		b.tellID(user("ann"), i, text)
	}
	cursors := &fileCursors{path: t.TempDir() + "/cursor"}
	at := func() cursor.Cursor {
		c, err := cursors.ReadCursors(b.context(), "reader")
		if err != nil {
			t.Fatal(err)
		}
		return c[0]
	}
	deaths := b.childrenUntil([]string{logEnv + "=" + cursors.path}, func() bool { return at().Sequence == 40 })
	if deaths < maxDeaths { // on a slow machine the cursor moves between deaths, and each counts
		t.Errorf("%d deaths", deaths)
	}
	if l := b.deadLetters(1)[0]; l.Code != events.CodePoison || l.MessageBuried.Sequence != 18 {
		t.Errorf("letter %+v", l)
	}
	if c := at(); c.Alone != 0 || c.Deaths != 0 {
		t.Errorf("cursor %+v", c)
	}
}

// TestP8LogMessageIsNotBlamedForOtherDeaths: a process that dies of something else at
// each start leaves alone a message that it handles meanwhile.
func TestP8LogMessageIsNotBlamedForOtherDeaths(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	b.tellID(user("ann"), 0, "slow")
	cursors := &fileCursors{path: t.TempDir() + "/cursor"}
	at := func() cursor.Cursor {
		c, err := cursors.ReadCursors(b.context(), "reader")
		if err != nil {
			t.Fatal(err)
		}
		return c[0]
	}
	file := logEnv + "=" + cursors.path
	b.childrenUntil([]string{file, logDies + "=1"}, func() bool { return at().Starts >= suspectStarts+2*maxDeaths })
	if c := at(); c.Deaths == 0 || c.Deaths >= maxDeaths {
		t.Errorf("cursor %+v", c)
	}
	b.childrenUntil([]string{file}, func() bool { return at().Sequence == 1 })
	if n := b.lettersHeld(); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// TestP8LogMessageThatKillsBehindOneThatFails: the deaths of a message count,
// though one of another key before it fails at each start. The cursor does not
// pass the one that fails.
func TestP8LogMessageThatKillsBehindOneThatFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	for i, text := range []string{"harmless", "failing", "harmless", "deadly", "harmless"} {
		b.tellID(user(fmt.Sprint(i)), i, text)
	}
	cursors := &fileCursors{path: t.TempDir() + "/cursor"}
	b.childrenUntil([]string{logEnv + "=" + cursors.path}, func() bool { return b.lettersHeld() > 0 })
	if l := b.deadLetters(1)[0]; l.Code != events.CodePoison || l.MessageBuried.Sequence != 4 {
		t.Errorf("letter %+v", l)
	}
	c, err := cursors.ReadCursors(b.context(), "reader")
	if err != nil || c[0].Sequence > 1 {
		t.Errorf("the cursor %+v passed what was not handled (%v)", c, err)
	}
}

// tellID publishes an episode whose id is a number.
func (b *bench) tellID(s scope.Scope, id int, text string) {
	b.tb.Helper()
	pub := &broker{js: b.js, conn: b.conn, now: time.Now, timeout: patience}
	if _, err := pub.Publish(b.context(), events.Meta{ID: fmt.Sprint(id), Source: "test"}, said(s, text)); err != nil {
		b.tb.Fatal(err)
	}
}

// strictCursors remembers the highest sequence that was ever written.
type strictCursors struct {
	fakeCursors
	highest atomic.Uint64
}

func (s *strictCursors) SetCursor(ctx context.Context, reader string, least uint64, c cursor.Cursor) error {
	s.highest.Store(max(s.highest.Load(), c.Sequence)) // one reader writes
	return s.fakeCursors.SetCursor(ctx, reader, least, c)
}

// TestP1LogOneByOneKeepsWhatIsHeld: while messages are handled one by one, those
// of other keys pass one that fails, but the cursor does not, not even for a moment.
func TestP1LogOneByOneKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	b.say(user("ann"), "first")
	cursors, got := &strictCursors{}, newSeen()
	var down atomic.Bool
	annKey := user("ann").Fact().String()
	got.fail = func(in []*Entry) error {
		for _, e := range in {
			if down.Load() && e.Key == annKey {
				e.Err = errors.New("its server is away")
			}
		}
		return nil
	}
	log := one(&cursors.fakeCursors, got.handle)
	log.Cursors = cursors
	_, stop := b.start(quickConfig(), ReadLog(log))
	b.caughtUp(&cursors.fakeCursors, "reader", 1)
	stop()
	diedOften := cursors.of("reader")
	diedOften.Starts = suspectStarts
	if err := cursors.SetCursor(b.context(), "reader", 0, diedOften); err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	b.start(quickConfig(), ReadLog(log))
	b.say(user("ann"), "second")
	for i := range 20 {
		b.say(user("bob"), fmt.Sprintf("bob %02d", i))
		b.eventually("bob is read", func() bool { return len(got.order(user("bob").Fact().String())) == i+1 })
	}
	b.eventually("no mark stands", func() bool { return cursors.of("reader").Alone == 0 })
	if n := cursors.highest.Load(); n != 1 {
		t.Errorf("the cursor stood at %d, beyond a message that was not handled", n)
	}
	down.Store(false)
	b.caughtUp(&cursors.fakeCursors, "reader", 22)
	if ids := got.order(annKey); !slices.Equal(ids, []string{"first", "second"}) {
		t.Errorf("handled %v", ids)
	}
}

// TestP8LogOneByOneLeavesNoMark: while a message of one partition is handled by
// itself, no message of another has a mark. A death counts against one message.
func TestP8LogOneByOneLeavesNoMark(t *testing.T) {
	t.Parallel()
	const users, each = 12, 4
	b := newBench(t)
	b.standard()
	cursors, got := &fakeCursors{}, newSeen()
	log := one(cursors, got.handle)
	log.Partitions = inPartitions()
	tell := func(round int) {
		for u := range users {
			for i := range each {
				b.tellID(user(fmt.Sprint(u)), 1000*round+100*u+i, "harmless")
			}
		}
	}
	handled := func(n int) func() bool { return func() bool { return len(got.new) == n } }
	tell(0)
	_, stop := b.start(quickConfig(), ReadLog(log))
	b.eventually("all are handled", handled(users*each))
	stop()
	cursors.mu.Lock()
	for reader, c := range cursors.kept {
		c.Starts = suspectStarts
		cursors.kept[reader] = c
	}
	cursors.mu.Unlock()
	got.fail = func([]*Entry) error {
		<-time.After(2 * time.Millisecond) // the work, during which other readers queue
		cursors.mu.Lock()
		defer cursors.mu.Unlock()
		marks := 0
		for _, c := range cursors.kept {
			marks += min(1, int(c.Alone))
		}
		if marks != 1 {
			t.Errorf("%d messages have a mark while one is handled", marks)
		}
		return nil
	}
	tell(1)
	b.start(quickConfig(), ReadLog(log))
	b.eventually("all are handled", handled(2*users*each))
}
