package redis

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/embed"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// counts is how often each command was sent.
type counts struct {
	mu   sync.Mutex
	sent map[string]int
}

func (c *counts) note(cmds ...goredis.Cmder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range cmds {
		switch name := strings.ToUpper(cmd.Name()); name {
		case "HELLO", "CLIENT", "PING": // the driver's, of a new connection
		default:
			c.sent[name]++
		}
	}
}

func (c *counts) now() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.sent)
}

func (c *counts) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (c *counts) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		c.note(cmd)
		return next(ctx, cmd)
	}
}

func (c *counts) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		c.note(cmds...)
		return next(ctx, cmds)
	}
}

func pendingIDs(t testing.TB, s *Store, limit int) (ids []string) {
	t.Helper()
	list, err := s.PendingVectors(t.Context(), 0, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		ids = append(ids, p.Ref.ID)
	}
	return ids
}

func queueOf(t testing.TB, s *Store, limit int) []string {
	t.Helper()
	reply, err := s.call(t.Context(), "ZRANGE", s.layout().waitQueue(), "["+space{ID: 1}.queue(), "("+space{ID: 1}.queue()+"\xff", "BYLEX", "LIMIT", 0, limit)
	if err != nil {
		t.Fatal(err)
	}
	return texts(reply)
}

// TestAnIdleEmbeddingLoopSearchesNothing: it costs one command each time it looks.
func TestAnIdleEmbeddingLoopSearchesNothing(t *testing.T) {
	t.Parallel()
	cfg := countedConfig(t)
	cfg.Pulse = time.Hour
	s := openNew(t, cfg)
	tell(t, s, "1", "hello")
	embedPending(t, s, 16)
	pendingIDs(t, s, 9) // searches once
	sent := &counts{sent: map[string]int{}}
	addHook(s, sent)
	const looks = 50
	for range looks {
		if ids := pendingIDs(t, s, 256); len(ids) > 0 {
			t.Fatal(ids)
		}
	}
	if diff := cmp.Diff(map[string]int{"ZRANGE": looks}, sent.sent); diff != "" {
		t.Errorf("commands of %d looks (-want +got):\n%s", looks, diff)
	}
}

// TestATextWhoseEntryGotLostIsEmbedded: the process died before it made the entry, or
// was of an earlier version. A store that was just opened finds it at once, one that
// looks all the time after some minutes.
func TestATextWhoseEntryGotLostIsEmbedded(t *testing.T) {
	t.Parallel()
	cfg, now := testConfig(t), said0
	cfg.Now = func() time.Time { return now }
	s := openNew(t, cfg)
	lose := func() {
		t.Helper()
		if _, err := s.call(t.Context(), "DEL", s.layout().waitQueue()); err != nil {
			t.Fatal(err)
		}
	}
	tell(t, s, "1", "hello")
	lose()
	if ids := pendingIDs(t, s, 9); len(ids) != 1 {
		t.Fatalf("a store that was just opened finds %v", ids)
	}
	embedPending(t, s, 16)
	pendingIDs(t, s, 9) // searches once more, and finds nothing
	tell(t, s, "2", "again")
	lose()
	if ids := pendingIDs(t, s, 9); len(ids) != 0 {
		t.Fatalf("searched too soon: %v", ids)
	}
	now = now.Add(searchEvery)
	if ids := pendingIDs(t, s, 9); len(ids) != 1 || ids[0] != "2" {
		t.Errorf("found %v after %v", ids, searchEvery)
	}
	lose()
	tell(t, s, "2", "again") // the message is read once more
	if ids := pendingIDs(t, s, 9); len(ids) != 1 || ids[0] != "2" {
		t.Errorf("found %v after the episode came again", ids)
	}
}

// TestStaleEntriesLeaveTheQueue: of rows that are gone, or were flagged anew, though
// nothing else is in it.
func TestStaleEntriesLeaveTheQueue(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	f := benchEffect("ana", 1).Facts[0]
	for revision := range uint64(2) {
		e := benchEffect("ana", 1)
		f.Revision, f.Text = revision+1, f.Text+" indeed"
		e.Scope, e.Revision, e.Facts, e.Versions, e.Range, e.Watermark = ana, revision+1, []events.Fact{f}, nil, nil, nil
		if err := s.Apply(t.Context(), e, revision+1); err != nil {
			t.Fatal(err)
		}
	}
	p := s.place(ana)
	if err := s.list(t.Context(), s.tenure(), p.queued(space{ID: 1}, 1, "e:none"), p.queued(space{ID: 1}, 2, "f:gone")); err != nil {
		t.Fatal(err)
	}
	if n := len(queueOf(t, s, 9)); n != 4 {
		t.Fatalf("%d entries, want 4: %q", n, queueOf(t, s, 9))
	}
	for limit := range 3 { // the stale entries are the first
		if ids := pendingIDs(t, s, limit+1); len(ids) != 1 || ids[0] != f.ID {
			t.Errorf("at most %d: %v", limit+1, ids)
		}
	}
	if left := queueOf(t, s, 9); len(left) != 1 {
		t.Errorf("left in the queue: %q", left)
	}
	if embedPending(t, s, 16) != 1 || len(queueOf(t, s, 9)) != 0 {
		t.Errorf("left in the queue once all is embedded: %q", queueOf(t, s, 9))
	}
}

// TestALostEntryIsMadeAnewBesideOthers, a page of rows at a time.
func TestALostEntryIsMadeAnewBesideOthers(t *testing.T) {
	t.Parallel()
	cfg, now := testConfig(t), said0
	cfg.Now = func() time.Time { return now }
	s := openNew(t, cfg)
	pendingIDs(t, s, 9) // searches once
	for i := range pageSize + 2 {
		now = now.Add(time.Microsecond)
		tell(t, s, fmt.Sprint(i), "hello")
	}
	queue := queueOf(t, s, 2*pageSize)
	lost := queue[len(queue)-1]
	if err := s.unlist(t.Context(), s.tenure(), lost); err != nil {
		t.Fatal(err)
	}
	now = now.Add(searchEvery)
	for range 2 {
		pendingIDs(t, s, 9)
	}
	if diff := cmp.Diff(queue, queueOf(t, s, 2*pageSize)); diff != "" {
		t.Errorf("queue before and after the search (-want +got):\n%s", diff)
	}
}

// TestEntriesThatSayNothingLeaveTheQueue, however many there are.
func TestEntriesThatSayNothingLeaveTheQueue(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	unknown := make([]string, 100)
	for i := range unknown {
		unknown[i] = fmt.Sprint(space{ID: 1}.queue(), "!", i)
	}
	if err := s.list(t.Context(), s.tenure(), unknown...); err != nil {
		t.Fatal(err)
	}
	if ids := pendingIDs(t, s, 3); len(ids) != 1 {
		t.Errorf("pending: %v", ids)
	}
	if left := queueOf(t, s, 200); len(left) != 1 {
		t.Errorf("left in the queue: %q", left)
	}
}

// TestSpaceSearchesForRowsOfOthers: rows of writers who have not heard of a space, and
// incognito ones among them.
func TestSpaceSearchesForRowsOfOthers(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Pulse = time.Hour // neither hears of what the other does
	s, late := openNew(t, cfg), openAt(t, cfg)
	tell(t, s, "1", "hello")
	embedPending(t, s, 16)
	if err := s.BuildSpace(t.Context(), embed.Info{Name: "other", Version: "1", Dimensions: 8}); err != nil {
		t.Fatal(err)
	}
	if ids := pendingIDs(t, s, 9); len(ids) > 0 {
		t.Errorf("pending in the served space: %v", ids)
	}
	next := s.Spaces().Next.ID
	embedPendingIn(t, s, next, 8)
	for s.Spaces().Next != nil {
		if _, err := s.MoveSpaces(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tell(t, late, "2", "hello again")
	secret := memory.Episode{ID: "3", Source: "app", Scope: ana, Role: events.RoleUser, Content: "secret", Mode: events.ModeIncognito}
	if _, err := late.PutEpisode(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	embedPending(t, late, 16)
	s.tenure().turnsOf(space{ID: next}).again()
	if ids := pendingIDs(t, s, 9); len(ids) != 1 || ids[0] != "2" {
		t.Errorf("pending: %v, want the one of the other process", ids)
	}
}
