package erasure

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestErasureNeedsRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"memory.db", "nats/jetstream/1.blk"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 500), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for free, want := range map[int64]error{999: ErrNoRoom, 1000: nil} {
		if err := Room(dir, func(string) (int64, error) { return free, nil }); !errors.Is(err, want) {
			t.Errorf("with %d bytes free: %v, want %v", free, err, want)
		}
	}
	broken := errors.New("no such disk")
	if err := Room(dir, func(string) (int64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("a disk that cannot be measured: %v", err)
	}
}
