package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/scope"
)

// TestP10KilledAtEachStep kills the program at each step of an erasure. The next
// start finishes it before it serves.
func TestP10KilledAtEachStep(t *testing.T) {
	t.Parallel()
	file, err := armed()
	if err != nil {
		t.Fatal(err)
	}
	i := mortal(t, file)
	i.begin()
	i.lives()
	others := i.remains()
	i.kill()
	for n, p := range failpoint.Points() {
		if p.Stage != failpoint.Erasure {
			continue
		}
		id := i.dieErasing(p, marked(fmt.Sprint(n)))
		if p.Step == failpoint.Streams {
			if _, stderr, code := run(t, nil, "rebuild", "--data", i.data); code == 0 || !strings.Contains(stderr, "not finished") {
				t.Errorf("rebuild works on data of which a part is erased: exit %d: %s", code, stderr)
			}
		}
		i.wantErased(p, id, "EPISODES", others)
	}
}

// dieErasing erases a user who said one thing, and dies at a step of that. It returns
// the id of the erasure.
func (i *process) dieErasing(p failpoint.Point, who scope.Scope) string {
	i.t.Helper()
	i.env = []string{failpoint.Env + "=" + p.String() + ":1"}
	i.begin()
	i.say(who, turn("I live in "+marker+"town."))
	i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), 1)
	id, err := i.api.Erase(i.t.Context(), who.User)
	if err != nil {
		i.t.Fatalf("%s: %v", p, err)
	}
	if _, said := i.ended(); !strings.Contains(said, "killed at "+p.String()) {
		i.t.Fatalf("%s is not reached; the program said %s", p, said)
	}
	return id
}

// wantErased starts again, which finishes the erasure of that one message, counted
// under kind. Nothing else may be gone.
func (i *process) wantErased(p failpoint.Point, id, kind, others string) {
	i.t.Helper()
	i.env = nil
	i.begin()
	e, err := i.api.Erasure(i.t.Context(), id)
	if err != nil || e.Receipt == nil || removed(*e.Receipt, kind) != 1 {
		i.t.Errorf("%s: behind the next start the erasure is %+v, %v", p, e, err)
	}
	if got := i.remains(); got != others {
		i.t.Errorf("%s: the others are\n%s\nand were\n%s", p, got, others)
	}
	i.kill()
	wantNoTrace(i.t, i.data)
}

// TestP10RestoredBackup: a copy of the data directory that is older than an erasure
// loses the user by its receipt, without a name; another directory refuses it.
func TestP10RestoredBackup(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	i.lives()
	others := i.remains()
	who := marked("")
	i.mark(who, 5)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(i.data)); err != nil {
		t.Fatal(err)
	}
	r, file := erase(t, "--data", i.data, "--user", who.User, "--yes")
	wantNoTrace(t, i.data)

	applied, _ := erase(t, "--data", backup, "--apply", file)
	if applied.Whom != r.Whom || removed(applied, "EPISODES") != removed(r, "EPISODES") {
		t.Errorf("applied %+v, want what %+v removed", applied, r)
	}
	wantNoTrace(t, backup)
	i.data = backup
	i.begin()
	if got := i.remains(); got != others {
		t.Errorf("in the backup the others are\n%s\nand were\n%s", got, others)
	}
	i.kill()

	stranger := start(t, t.TempDir())
	if err := stranger.stop(); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, nil, "erase", "--data", stranger.data, "--apply", file); code == 0 || !strings.Contains(stderr, "another data directory") {
		t.Errorf("another directory takes the receipt: exit %d: %s", code, stderr)
	}
}

// TestP10StreamsRestored: streams from before an erasure, beside a store and
// tombstones from behind it, bring nothing back by a rebuild.
func TestP10StreamsRestored(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	i.lives()
	others := i.remains()
	i.mark(marked(""), 3)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	streams := filepath.Join(t.TempDir(), "nats")
	if err := os.CopyFS(streams, os.DirFS(filepath.Join(i.data, "nats"))); err != nil {
		t.Fatal(err)
	}
	erase(t, "--data", i.data, "--user", marked("").User, "--yes")
	if err := os.RemoveAll(filepath.Join(i.data, "nats")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(i.data, "nats"), os.DirFS(streams)); err != nil {
		t.Fatal(err)
	}
	rebuild(t, i.data, 0)
	if out, stderr, code := run(t, nil, "verify", "--data", i.data); code != 0 {
		t.Errorf("verify: exit %d: %s%s", code, out, stderr)
	}
	i.begin()
	if got := i.remains(); got != others {
		t.Errorf("the others are\n%s\nand were\n%s", got, others)
	}
}
