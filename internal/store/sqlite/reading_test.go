package sqlite

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// TestOpenReading reads beside a store that is open, by a relative path too, and
// writes nothing.
func TestOpenReading(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := OpenReading(t.Context(), "memory.db"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	fill(t, "memory.db", 3)
	writer, err := Open(t.Context(), Config{Path: "memory.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	st, err := OpenReading(t.Context(), filepath.Join("..", filepath.Base(filepath.Dir(writer.cfg.Path)), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	state, err := st.State(t.Context(), scope.Scope{Project: "p", User: "u"})
	if err != nil || state.LastOrdinal != 3 {
		t.Errorf("state %+v, %v", state, err)
	}
	if _, err := st.PutEpisode(t.Context(), memory.Episode{ID: "x", Scope: scope.Scope{Project: "p", User: "u"}}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a write: %v", err)
	}
	if err := errors.Join(st.Check(t.Context(), func(int, int) {}), st.Close()); err != nil {
		t.Error(err)
	}
}
