package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"palimpsest/pkg/events"
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
