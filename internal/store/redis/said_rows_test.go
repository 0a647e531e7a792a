package redis

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// TestP10ErasedRowsAreNotRemembered: a process that read an episode of a user does not
// return it in the place of one that was stored after the user was erased, though the
// two have one key: at once in the process that erased the user, and after saidFor in
// another one.
func TestP10ErasedRowsAreNotRemembered(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	var later atomic.Int64
	cfg.Now = func() time.Time { return said0.Add(time.Duration(later.Load())) }
	one, two := openNew(t, cfg), openAt(t, cfg)
	tell(t, one, "1", "what was erased")
	read := func(s *Store, want string) {
		t.Helper()
		list, err := s.EpisodeRange(t.Context(), ana, events.Range{To: 1})
		if err != nil || len(list) != 1 || list[0].Content != want {
			t.Errorf("%+v, %v; want %q", list, err, want)
		}
	}
	read(one, "what was erased")
	read(two, "what was erased")
	whom := memory.Whom{Project: "p", Is: func(user string) bool { return user == "ana" }}
	if _, err := one.Erase(t.Context(), whom); err != nil {
		t.Fatal(err)
	}
	tell(t, one, "1", "what was said since")
	read(one, "what was said since")
	later.Store(int64(saidFor))
	read(two, "what was said since")
}

// TestRememberedRowsAreSmall checks that the remembered part of an episode is bounded,
// with its metadata.
func TestRememberedRowsAreSmall(t *testing.T) {
	t.Parallel()
	var rows saidRows
	rows.note("k", fields{"b": strings.Repeat("m", maxSaidText), "c": "hello"}, said0)
	if rows.of("k", said0) != nil {
		t.Error("a row with long metadata is remembered")
	}
}
