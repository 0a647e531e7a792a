package redis

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/embed"
	"palimpsest/pkg/events"
)

var otherEmbedder = embed.Info{Name: "other", Version: "1", Dimensions: 8}

// meanwhile does something once, before a command is sent or after it was answered.
type meanwhile struct {
	command       string
	did           atomic.Bool
	before, after func()
}

func (*meanwhile) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (m *meanwhile) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if cmd.Name() != m.command || m.did.Swap(true) {
			return next(ctx, cmd)
		}
		if m.before != nil {
			m.before()
		}
		err := next(ctx, cmd)
		if m.after != nil {
			m.after()
		}
		return err
	}
}

func (*meanwhile) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// learn gives ana's fact a text in a revision.
func learn(t *testing.T, s *Store, revision uint64, text string) (id string) {
	t.Helper()
	e := benchEffect("ana", 1)
	f := e.Facts[0]
	f.Revision, f.Text = revision, text
	e.Scope, e.Revision, e.Facts, e.Versions, e.Range, e.Watermark = ana, revision, []events.Fact{f}, nil, nil, nil
	if err := s.Apply(t.Context(), e, revision); err != nil {
		t.Fatal(err)
	}
	return f.ID
}

// TestTwoBeginASpace: two processes begin the space of one embedder at the same time. A
// third, which has not heard of it, changes a text that has its vector there: the vector
// of the text before does not stay.
func TestTwoBeginASpace(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Pulse = time.Hour // none hears of what another does
	a := openNew(t, cfg)
	b, late := openAt(t, cfg), openAt(t, cfg)
	id := learn(t, a, 1, "Ana likes tea")
	embedPending(t, a, 16)
	build := func(s *Store) {
		if err := s.BuildSpace(t.Context(), otherEmbedder); err != nil {
			t.Error(err)
		}
	}
	addHook(a, &meanwhile{command: "ft.alter", before: func() { build(b) }})
	build(a)
	x, y := a.Spaces().Next, b.Spaces().Next
	if x == nil || y == nil || *x != *y {
		t.Fatalf("built are %+v and %+v", x, y)
	}
	if n := embedPendingIn(t, b, y.ID, 8); n != 1 {
		t.Fatalf("%d embedded, want 1", n)
	}
	learn(t, late, 2, "Ana likes coffee")
	b.tenure().turnsOf(space{ID: y.ID}).again()
	list, err := b.PendingVectors(t.Context(), y.ID, 9)
	if err != nil || len(list) != 1 || list[0].Ref.ID != id || list[0].Text != "Ana likes coffee" {
		t.Errorf("pending: %+v, %v, want the new text", list, err)
	}
}

// TestTwoServeASpaceAtOnce: of two processes that begin the space of one embedder in a
// store without vectors, the slower one does not serve it once more.
func TestTwoServeASpaceAtOnce(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Pulse = time.Hour
	a := openNew(t, cfg)
	b := openAt(t, cfg)
	addHook(a, &meanwhile{command: "ft.alter", before: func() {
		if err := b.BuildSpace(t.Context(), otherEmbedder); err != nil {
			t.Error(err)
		}
	}})
	if err := a.BuildSpace(t.Context(), otherEmbedder); err != nil {
		t.Fatal(err)
	}
	if x, y := a.Spaces(), b.Spaces(); x != y || x.Served.Embedder != otherEmbedder {
		t.Errorf("served are %+v and %+v", x, y)
	}
	m, _, err := a.readMeta(t.Context(), a.layout())
	if err != nil || len(m.Dropped) != 1 || m.Dropped[0].ID != 1 {
		t.Errorf("dropped are %+v, %v, want the first space", m.Dropped, err)
	}
}

// TestAnOldViewOfTheSpacesIsNotTaken: the pulse reads the spaces, and before it takes
// note of them the same process begins a space.
func TestAnOldViewOfTheSpacesIsNotTaken(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Pulse = time.Hour
	s := openNew(t, cfg)
	learn(t, s, 1, "Ana likes tea")
	embedPending(t, s, 16)
	addHook(s, &meanwhile{command: "get", after: func() {
		if err := s.BuildSpace(t.Context(), otherEmbedder); err != nil {
			t.Error(err)
		}
	}})
	if err := s.followSpaces(t.Context(), s.tenure()); err != nil {
		t.Fatal(err)
	}
	if next := s.Spaces().Next; next == nil || next.Embedder != otherEmbedder {
		t.Errorf("under construction is %+v", next)
	}
}
