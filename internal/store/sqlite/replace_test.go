package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store"
)

// torn creates at path the files of a killed process whose log was cut after a part
// of it was copied into the file.
func torn(t *testing.T, path string) {
	t.Helper()
	scratch := filepath.Join(t.TempDir(), "memory.db")
	s, err := Open(t.Context(), Config{Path: scratch})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	for n := range 20 {
		if _, err := s.PutEpisode(t.Context(), testEpisode("u", fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
	}
	var busy, logged, done int
	if _, err := s.reads.one(t.Context(), `PRAGMA wal_checkpoint(PASSIVE)`, nil, &busy, &logged, &done); err != nil || done == 0 {
		t.Fatalf("checkpoint: %d of %d, %v", done, logged, err)
	}
	for _, suffix := range []string{"", sqlitefile.LogSuffix, sqlitefile.IndexSuffix} {
		raw, err := os.ReadFile(scratch + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if suffix == sqlitefile.LogSuffix {
			raw = raw[:len(raw)/2]
		}
		if err := os.WriteFile(path+suffix, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAReplacementThatIsBrokenOff leaves, wherever it was, nothing that a start
// would take for whole and is not; and the next one succeeds.
func TestAReplacementThatIsBrokenOff(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"whole", "torn", "none"} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			for at := 0; brokenOff(t, before, at); at++ {
			}
		})
	}
}

// brokenOff breaks off the replacement of a file after some steps; more says
// that there are others.
func brokenOff(t *testing.T, before string, after int) (more bool) {
	t.Helper()
	dir := t.TempDir()
	path, made := filepath.Join(dir, "memory.db"), filepath.Join(dir, "memory.db.new")
	switch before {
	case "whole":
		shut(t, sealed(t, path, 1))
	case "torn":
		torn(t, path)
	}
	shut(t, sealed(t, made, 2))
	steps, _, err := replacement(path, made)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps[:after] {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	more = after < len(steps)
	got, gone := found(t, path), before == "torn"
	if got != "2" && (!more || got != before && !(gone && got == "none")) {
		t.Errorf("after %d steps a start finds it %s", after, got)
	}
	again(t, path, made)
	return more
}

// found is what a start finds at path: how many episodes a store has that it
// takes for whole.
func found(t *testing.T, path string) string {
	t.Helper()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	s, err := Open(t.Context(), Config{Path: path})
	if errors.Is(err, store.ErrDamaged) {
		return "torn"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	if n := ordinal(t, s); n != 1 {
		return fmt.Sprint(n)
	}
	return "whole"
}

// again replaces once more from the beginning, as the next start does.
func again(t *testing.T, path, made string) {
	t.Helper()
	if err := Discard(made); err != nil {
		t.Fatal(err)
	}
	shut(t, sealed(t, made, 3))
	if _, err := Replace(path, made); err != nil {
		t.Fatal(err)
	}
	if got := found(t, path); got != "3" {
		t.Errorf("the next replacement leaves %s", got)
	}
}

func sealed(t *testing.T, path string, n int) *Store {
	t.Helper()
	s := building(t, path, n)
	if err := s.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}
