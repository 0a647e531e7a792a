package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// overwriteMiddle overwrites pages of a file, but not those at its beginning and
// its end.
func overwriteMiddle(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(raw) / 2; i < len(raw)*3/4; i++ {
		raw[i] = 0x5a
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func fill(t *testing.T, path string, n int) {
	t.Helper()
	st, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		at := time.Unix(int64(i), 0)
		_, err := st.PutEpisode(t.Context(), memory.Episode{
			ID: fmt.Sprint(i), Scope: scope.Scope{Project: "p", User: "u"}, Role: events.RoleUser, Content: strings.Repeat(fmt.Sprintf("word%d ", i), 50),
			Timestamp: at, ArrivedAt: at,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCheckFindsDamagedPages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	fill(t, path, 500)
	whole, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	done, all := 0, 0
	if err := whole.Check(t.Context(), func(d, a int) { done, all = d, a }); err != nil || done != all || all < 10 {
		t.Errorf("a whole file: %v, %d of %d tables", err, done, all)
	}
	if err := errors.Join(whole.Ping(t.Context()), whole.Close()); err != nil {
		t.Error(err)
	}
	overwriteMiddle(t, path)
	for name, find := range map[string]func(st *Store) error{
		"checked": func(st *Store) error { return st.Check(t.Context(), func(int, int) {}) },
		"read": func(st *Store) error {
			_, err := st.EpisodeRange(t.Context(), scope.Scope{Project: "p", User: "u"}, events.Range{To: 500})
			return err
		},
		"checked in the background": func(st *Store) error {
			<-st.damage.ended
			return st.damage.seen()
		},
	} {
		cfg := Config{Path: path}
		if strings.HasSuffix(name, "background") {
			cfg.CheckAfter = time.Millisecond
		}
		st, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := find(st); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if err := st.Ping(t.Context()); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: ping: %v", name, err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}
