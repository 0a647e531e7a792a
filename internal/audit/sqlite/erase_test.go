package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/memory"
)

func TestErasure(t *testing.T) {
	t.Parallel()
	audittest.RunErasure(t, func(t *testing.T) audit.Log {
		t.Helper()
		log := open(t, filepath.Join(t.TempDir(), "audit.db"))
		t.Cleanup(func() { _ = log.Close() })
		return log
	})
}

// TestP10NoByteIsLeftInTheLog: the name of an erased user is in no file.
func TestP10NoByteIsLeftInTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := open(t, filepath.Join(dir, "audit.db"))
	of := audittest.LogStory(audittest.JournalScopes()[0], 3, 1)
	for i := range of {
		of[i].Data.Scope.User = audittest.Erased
	}
	if err := log.Write(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	whom := memory.Whom{Project: of[0].Data.Scope.Project, Is: func(user string) bool { return user == audittest.Erased }}
	if _, err := log.Erase(t.Context(), whom); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil || bytes.Contains(raw, []byte(audittest.Erased)) {
			t.Errorf("%s holds the name: %v", filepath.Base(file), err)
		}
	}
}
