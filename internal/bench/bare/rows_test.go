package bare

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/embed/local"
	"palimpsest/internal/memory"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestTheLimitInsertsTheStoredRows checks that both files have the same schema with
// every index, the same rows, and the same documents in the text index.
func TestTheLimitInsertsTheStoredRows(t *testing.T) {
	t.Parallel()
	const users, episodes = 200, 407
	path := filepath.Join(t.TempDir(), "memory.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Embedder: local.New().Info()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range episodes {
		_, err := s.PutEpisode(t.Context(), memory.Episode{
			ID: fmt.Sprintf("id-%d", i), Source: "test", Role: events.RoleUser, Content: fmt.Sprintf("I bought %d apples in Bern.", i),
			Timestamp: time.Unix(int64(i), 0), Scope: scope.Scope{Project: "p", User: fmt.Sprint(i % users), Session: "s1"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := ReadRows(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if want.Len() != episodes || len(want.schema) < 20 {
		t.Fatalf("%d episodes, %d statements", want.Len(), len(want.schema))
	}
	raw := filepath.Join(t.TempDir(), "raw.db")
	if took, _, err := want.Insert(t.Context(), raw); err != nil || took <= 0 {
		t.Fatalf("took %v, %v", took, err)
	}
	got, err := ReadRows(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Rows{}, indexed{}, inserts{})); diff != "" {
		t.Error(diff)
	}
}
