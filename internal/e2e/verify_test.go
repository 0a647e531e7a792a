package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/internal/topology"
)

// verified is what `palimpsest verify --json` says.
type verified struct {
	Episodes, Scopes, Effects, Rows int
	OnlyStore                       int `json:"only_store"`
	Dropped                         int
	Differences                     []struct {
		What  string
		Count int
	}
}

func verify(t testing.TB, data string, code int) (out verified) {
	t.Helper()
	stdout, stderr, exit := run(t, nil, "--json", "verify", "--data", data)
	if exit != code {
		t.Fatalf("verify: exit %d, want %d: %s; it said %s", exit, code, stdout, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("verify says %q: %v; %s", stdout, err, stderr)
	}
	return out
}

// TestVerifyComparesStoreStreamsAndLog, while Palimpsest runs and once it is stopped,
// and names what differs.
func TestVerifyComparesStoreStreamsAndLog(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	episodes := i.lives() + 1
	if got := verify(t, i.data, 0); got.Episodes != episodes || got.Scopes != 5 || got.Effects == 0 || got.Rows == 0 {
		t.Errorf("running: %+v, want %d episodes", got, episodes)
	}
	i.trim(topology.StreamEpisodes, 20)
	if got := verify(t, i.data, 0); got.Episodes != episodes || got.Dropped == 0 {
		t.Errorf("trimmed: %+v", got)
	}
	i.kill()
	want := verify(t, i.data, 0)
	for _, c := range []struct{ file, statement, what string }{
		{"memory.db", `DELETE FROM episodes WHERE seq = (SELECT max(seq) FROM episodes)`, "episodes of EPISODES are not in the store"},
		{"memory.db", `UPDATE episodes SET content = 'I live in Atlantis.' WHERE seq = (SELECT max(seq) FROM episodes)`, "episodes differ between EPISODES and the store"},
		{"memory.db", `UPDATE scopes SET revision = revision - 1, audit_seq = 0 WHERE id = 1`, "scopes are behind AUDIT in the store"},
		{"memory.db", `UPDATE scopes SET revision = revision + 1, audit_seq = audit_seq + 1000 WHERE id = 1`, "scopes are ahead of AUDIT in the store"},
		{"audit.db", `DELETE FROM effects WHERE sequence = (SELECT max(sequence) FROM effects)`, "effects of AUDIT are not in the audit log"},
		{"audit.db", `UPDATE effects SET sequence = sequence + 1000 WHERE sequence = (SELECT min(sequence) FROM effects)`, "effects differ between AUDIT and the audit log"},
		{"audit.db", `DELETE FROM record_rows WHERE (place, revision, idx) = (SELECT place, revision, idx FROM record_rows LIMIT 1)`, "effects have other rows in the audit log than deltas"},
	} {
		whole := keepFiles(t, i.data, c.file)
		tamper(t, filepath.Join(i.data, c.file), c.statement)
		got := verify(t, i.data, 1)
		found := false
		for _, d := range got.Differences {
			found = found || d.What == c.what && d.Count == 1
		}
		if !found {
			t.Errorf("%s: found %+v, want 1 %s", c.statement, got.Differences, c.what)
		}
		whole()
	}
	if got := verify(t, i.data, 0); got.Rows != want.Rows {
		t.Errorf("afterwards: %+v, want %+v", got, want)
	}
	_, stderr, code := run(t, nil, "verify", "--data", t.TempDir())
	if code != 1 || !strings.Contains(stderr, "holds no streams") {
		t.Errorf("an empty directory: exit %d, %s", code, stderr)
	}
}

// keepFiles keeps a database with its log, and returns what puts them back.
func keepFiles(t testing.TB, data, name string) (restore func()) {
	t.Helper()
	kept := map[string][]byte{}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := filepath.Join(data, name+suffix)
		raw, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		kept[path] = raw
	}
	return func() {
		for path, raw := range kept {
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if raw != nil {
				write(t, path, raw)
			}
		}
	}
}
