package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func testEpisodes(t *testing.T, s suite) {
	t.Run("round trip", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		in := memory.Episode{
			ID: "id-1", Source: "mail", Scope: scope.Scope{Project: "p", User: "ana", Agent: "bot", Session: "s"},
			Role: events.RoleTool, Content: "résumé — 你好 \"quoted\"\x00\n end", Clamped: true,
			Timestamp: epoch.Add(1234 * time.Microsecond).In(time.FixedZone("", 2*3600)), ArrivedAt: epoch.Add(time.Hour),
			SourceNode: "node-1", Mode: events.ModeBackfill, Seq: 77, CorrelationID: "c-1", Request: true,
			Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			Prompt:      "only names", Verbatim: true,
			Metadata: map[string]any{"a": map[string]any{"b": []any{"x", 1.5, true, nil}}},
		}
		got := put(t, st, in)
		in.Ordinal = 1
		equal(t, "put", in, got.Episode)
		read := must(st.Episode(t.Context(), in.Scope, "mail", "id-1"))(t)
		equal(t, "read", in, read)
		if _, offset := read.Timestamp.Zone(); offset != 2*3600 {
			t.Errorf("offset = %d, want %d", offset, 2*3600)
		}
		equal(t, "any source", in, must(st.Episode(t.Context(), in.Scope, "", "id-1"))(t))
		for _, other := range []scope.Scope{user("ana", "s"), {Project: "p", User: "ana", Agent: "bot", Session: "t"}, {Project: "q", User: "ana", Agent: "bot", Session: "s"}} {
			if _, err := st.Episode(t.Context(), other, "mail", "id-1"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("Episode in %v: %v, want ErrNotFound", other, err)
			}
		}
		if _, err := st.Episode(t.Context(), in.Scope, "other", "id-1"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Episode of another source: %v, want ErrNotFound", err)
		}
	})
	t.Run("instants", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		for i, at := range []time.Time{
			time.Unix(0, 0).UTC(), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC),
			time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		} {
			e := episode(user("ana", ""), fmt.Sprint(i), 0, "x")
			e.Timestamp = at
			if got := put(t, st, e).Episode.Timestamp; !got.Equal(at) {
				t.Errorf("put %v, got %v", at, got)
			}
			if got := must(st.Episode(t.Context(), e.Scope, "", e.ID))(t).Timestamp; !got.Equal(at) {
				t.Errorf("stored %v, read %v", at, got)
			}
		}
	})
	t.Run("several at once", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		es := []memory.Episode{
			episode(user("ana", "s"), "1", 0, "one"), episode(user("bob", "s"), "1", 1, "bob's"),
			episode(user("ana", "s"), "2", 2, "two"), episode(user("ana", "s"), "1", 3, "one"),
			episode(user("ana", "s"), "2", 4, "not two"), episode(user("ana", "t"), "3", 5, "three"),
		}
		puts := must(st.PutEpisodes(t.Context(), es))(t)
		type answer struct {
			Ordinal, Last   uint64
			Known, Conflict bool
		}
		var got []answer
		for _, p := range puts {
			got = append(got, answer{p.Episode.Ordinal, p.State.LastOrdinal, p.Known, p.Conflict})
		}
		equal(t, "answers", []answer{{1, 1, false, false}, {1, 1, false, false}, {2, 2, false, false}, {1, 2, true, false}, {2, 2, false, true}, {3, 3, false, false}}, got)
		es = []memory.Episode{episode(user("ana", "s"), "4", 6, "four"), episode(user("ana", "s"), "", 7, "has no id")}
		if _, err := st.PutEpisodes(t.Context(), es); err == nil {
			t.Error("an episode without an id was stored")
		}
		if _, err := st.Episode(t.Context(), user("ana", "s"), "", "4"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of a refused call one is stored: %v", err)
		}
	})
	t.Run("a thousand times is once", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		fresh := 0
		for range 20 {
			wg.Go(func() {
				for range 50 {
					p, err := st.PutEpisode(t.Context(), episode(user("ana", "s"), "same", 0, "hello"))
					if err != nil || p.Conflict || p.Episode.Ordinal != 1 || p.State.LastOrdinal != 1 {
						t.Errorf("put = %+v, %v", p, err)
						return
					}
					if !p.Known {
						mu.Lock()
						fresh++
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		if fresh != 1 {
			t.Errorf("stored %d times", fresh)
		}
		if n := len(must(st.Recent(t.Context(), scope.Selector{Project: "p"}, store.RecentQuery{Limit: 10}))(t)); n != 1 {
			t.Errorf("%d episodes", n)
		}
	})
	t.Run("one id in many places", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		for _, sc := range []scope.Scope{user("ana", "s"), user("bea", "s"), user("ana", "t"), user("ana", ""), {Project: "q", User: "ana", Session: "s"}} {
			if p := put(t, st, episode(sc, "1", 0, "hello "+sc.String())); p.Known || p.Conflict {
				t.Errorf("%v: %+v", sc, p)
			}
		}
		e := episode(user("ana", "s"), "1", 0, "another source")
		e.Source = "mail"
		if p := put(t, st, e); p.Known || p.Conflict {
			t.Errorf("other source: %+v", p)
		}
	})
	t.Run("conflict", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		first := put(t, st, episode(user("ana", "s"), "1", 0, "hello")).Episode
		for name, change := range map[string]func(*memory.Episode){
			"content": func(e *memory.Episode) { e.Content = "bye" },
			"role":    func(e *memory.Episode) { e.Role = events.RoleAssistant },
			"mode":    func(e *memory.Episode) { e.Mode = events.ModeBackfill },
		} {
			e := episode(user("ana", "s"), "1", 5, "hello")
			change(&e)
			p := put(t, st, e)
			if !p.Conflict || p.Known {
				t.Errorf("%s: %+v, want a conflict", name, p)
			}
			equal(t, name, first, p.Episode)
		}
		e := episode(user("ana", "s"), "1", 5, "hello")
		e.Mode = ""
		if p := put(t, st, e); !p.Known || p.Conflict {
			t.Errorf("the empty mode is persistent: %+v", p)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		st := s.open(t)
		for _, e := range []memory.Episode{
			episode(scope.Scope{Project: "p"}, "1", 0, "x"), episode(scope.Scope{User: "ana"}, "1", 0, "x"), episode(user("ana", "s"), "", 0, "x"),
		} {
			if _, err := st.PutEpisode(t.Context(), e); err == nil {
				t.Errorf("PutEpisode(%v, %q) was taken", e.Scope, e.ID)
			}
		}
	})
}
