package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"palimpsest/internal/embed"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// killedPath names the store to the process that is to be killed.
const killedPath = "PALIMPSEST_TEST_KILLED_STORE"

// TestAcknowledgedSurvivesKill kills a writing process at some moment and looks
// for everything it had acknowledged (promise P1), each once and in order (P2).
func TestAcknowledgedSurvivesKill(t *testing.T) {
	t.Parallel()
	if path := os.Getenv(killedPath); path != "" {
		writeUntilKilled(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "memory.db")
	said := map[string]bool{}
	for round := range 3 {
		for _, id := range killAfter(t, path, 100+77*round) {
			said[id] = true
		}
		s := openAt(t, Config{Path: path})
		list, err := s.EpisodeRange(t.Context(), testEpisode("ana", "").Scope.Fact(), events.Range{To: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for i, e := range list {
			if e.Ordinal != uint64(i+1) || found[e.ID] {
				t.Fatalf("episode %d: ordinal %d, id %s", i, e.Ordinal, e.ID)
			}
			found[e.ID] = true
		}
		for id := range said {
			if !found[id] {
				t.Errorf("%s was acknowledged and is lost", id)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killAfter runs a writer, kills it once it has acknowledged n episodes, and
// returns the ids of all that it acknowledged.
func killAfter(t *testing.T, path string, n int) (ids []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), killedPath+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if ids = append(ids, lines.Text()); len(ids) == n {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
	if len(ids) < n {
		t.Fatalf("the writer ended by itself: %v", ids)
	}
	return ids
}

func writeUntilKilled(t *testing.T, path string) {
	t.Helper()
	s := openAt(t, Config{Path: path})
	var wg sync.WaitGroup
	var mu sync.Mutex
	for w := range 8 {
		wg.Go(func() {
			for i := range 100_000 {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if _, err := s.PutEpisode(context.Background(), testEpisode("ana", id)); err != nil {
					return
				}
				mu.Lock()
				fmt.Println(id)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// TestKilledWhileTheEmbedderChanges kills a process that changes the embedder again and
// again. The served space is whole each time, and the change goes on.
func TestKilledWhileTheEmbedderChanges(t *testing.T) {
	t.Parallel()
	if path := os.Getenv(killedPath); path != "" {
		s := openAt(t, Config{Path: path})
		for i := 0; ; i++ {
			takeSpace(t, s, 4+i%2, func() { fmt.Println(i) })
		}
	}
	const rows = 300
	cfg := Config{Path: filepath.Join(t.TempDir(), "memory.db"), Embedder: testEmbedder}
	s := openAt(t, cfg)
	list := make([]memory.Episode, rows)
	for i := range list {
		list[i] = testEpisode("ana", strconv.Itoa(i))
	}
	if _, err := s.PutEpisodes(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	embedSome(t, s, 0, testEmbedder.Dimensions, func() {})
	for round := range 6 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		killAfter(t, cfg.Path, 5+13*round)
		s = openAt(t, cfg)
		served := s.Spaces().Served
		v := make([]float32, served.Embedder.Dimensions)
		v[0] = 1
		hits, err := s.SearchVector(t.Context(), scope.Under(testEpisode("ana", "").Scope.Fact()), v,
			store.SearchQuery{Target: store.Episodes, Limit: 1000, Space: served.ID})
		if err != nil || len(hits) != rows || hits[rows-1].Score < 0.99 {
			t.Fatalf("round %d: %d rows in space %d, want %d, %v", round, len(hits), served.ID, rows, err)
		}
	}
	takeSpace(t, s, 7, func() {})
	if got := s.Spaces(); got.Next != nil || got.Served.Embedder.Dimensions != 7 {
		t.Errorf("in the end there are %+v", got)
	}
}

// takeSpace changes the embedder to one of those dimensions, and calls each after every
// step.
func takeSpace(t *testing.T, s *Store, dimensions int, each func()) {
	t.Helper()
	info := embed.Info{Name: "killed", Version: strconv.Itoa(dimensions), Dimensions: dimensions}
	if err := s.BuildSpace(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	each()
	if next := s.Spaces().Next; next != nil {
		embedSome(t, s, next.ID, dimensions, each)
	}
	for done := false; !done; each() {
		var err error
		if done, err = s.MoveSpaces(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// embedSome gives vectors to all that lacks them in a space.
func embedSome(t *testing.T, s *Store, space uint64, dimensions int, each func()) {
	t.Helper()
	for {
		list, err := s.PendingVectors(t.Context(), space, 32)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			return
		}
		vectors := make([]store.Vector, len(list))
		for i, p := range list {
			vectors[i] = store.Vector{Ref: p.Ref, Values: make([]float32, dimensions)}
			vectors[i].Values[0] = 1
		}
		if err := s.PutVectors(t.Context(), vectors); err != nil {
			t.Fatal(err)
		}
		each()
	}
}
