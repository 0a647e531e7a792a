package audittest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/internal/cursor"
)

// logCursors: a cursor is what was set last.
func logCursors(t *testing.T, log audit.Log) {
	for _, want := range []cursor.Cursor{
		{Stream: "AUDIT@2026", Sequence: 1 << 40, Starts: 2, Alone: 7, Deaths: 1}, {Stream: "AUDIT@2027", Sequence: 3},
	} {
		if err := log.SetCursor(t.Context(), "a reader/🦊", 0, want); err != nil {
			t.Fatal(err)
		}
		got, err := log.ReadCursors(t.Context(), "unknown", "a reader/🦊")
		if diff := cmp.Diff([]cursor.Cursor{{}, want}, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
	if err := log.SetCursor(t.Context(), "a reader/🦊", 4, cursor.Cursor{Sequence: 5}); !errors.Is(err, cursor.ErrWentBack) {
		t.Errorf("SetCursor of one that went back: %v", err)
	}
}
