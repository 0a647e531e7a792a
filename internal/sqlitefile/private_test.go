package sqlitefile

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPrivate checks that only the owner can read a new file, and one that an earlier
// version made readable by all. Its data stay.
func TestPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := filepath.Join(dir, "old.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := os.WriteFile(old+suffix, []byte("rows"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(old+suffix, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	created := filepath.Join(dir, "new.db")
	for _, path := range []string{created, old} {
		if err := private(path); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{created: "", old: "rows", old + "-wal": "rows"} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v: %v", path, info.Mode(), err)
		}
		if raw, err := os.ReadFile(path); err != nil || string(raw) != want {
			t.Errorf("%s holds %q: %v", path, raw, err)
		}
	}
	if _, err := os.Stat(old + "-shm"); !os.IsNotExist(err) {
		t.Errorf("a file appeared: %v", err)
	}
}
