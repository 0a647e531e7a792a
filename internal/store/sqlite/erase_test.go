package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/internal/store/storetest"
)

// TestP10NoByteIsLeftInTheFile: a marker in each text of a user, some of them
// updated before, is in no file behind an erasure.
func TestP10NoByteIsLeftInTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openAt(t, Config{Path: filepath.Join(dir, "memory.db"), Embedder: testEmbedder})
	storetest.FillErasure(t, s, testEmbedder.Dimensions)
	whom := memory.Whom{Project: "p", Is: func(user string) bool { return user == storetest.Marker }}
	if _, err := s.Erase(t.Context(), whom); err != nil {
		t.Fatal(err)
	}
	whom.Project = "other"
	if _, err := s.Erase(t.Context(), whom); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"episode", "fact"} {
		var left int
		err := s.reads.db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table+`_postings WHERE term LIKE '%marker%'`).Scan(&left)
		if err != nil || left > 0 {
			t.Errorf("%d postings of the marker in the text index of %ss: %v", left, table, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(raw, []byte("marker")); at >= 0 {
			t.Errorf("the marker is in %s: %q", filepath.Base(file), raw[max(0, at-40):min(len(raw), at+40)])
		}
	}
}

// TestErasureDeletesRowsOfNoScope: rows whose scope is gone name no user, and a scan counts
// them.
func TestErasureDeletesRowsOfNoScope(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db"), Embedder: testEmbedder})
	storetest.FillErasure(t, s, testEmbedder.Dimensions)
	nobody := memory.Whom{Project: "p", Is: func(string) bool { return false }}
	if left, err := s.Scan(t.Context(), nobody); left != 0 || err != nil {
		t.Fatalf("a scan of a whole store finds %d, %v", left, err)
	}
	err := s.write(t.Context(), func(w *writer) error {
		return w.exec(`INSERT INTO vector_queue (target, row) VALUES (1, 999)`)
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := s.Scan(t.Context(), nobody); left != 1 || err != nil {
		t.Errorf("a scan finds %d rows of no scope, %v", left, err)
	}
	if _, err := s.Erase(t.Context(), nobody); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Scan(t.Context(), nobody); left != 0 || err != nil {
		t.Errorf("behind an erasure a scan finds %d, %v", left, err)
	}
}
