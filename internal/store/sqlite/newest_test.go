package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
)

func TestNewestSequence(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	for i, seq := range []uint64{0, 5, 9, 7} {
		if seq > 0 {
			e := testEpisode("ana", fmt.Sprint(i))
			e.Seq = seq
			if _, err := s.PutEpisode(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.NewestSequence(t.Context()); err != nil || got != []uint64{0, 5, 9, 9}[i] {
			t.Errorf("after %d: %d, %v", seq, got, err)
		}
	}
}
