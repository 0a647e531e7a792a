package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// TestP5ExportAndImport: an export of everything, imported into a new directory, is
// the same memory with its provenance, and goes on from there.
func TestP5ExportAndImport(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	who := person("nora")
	i.say(who, "I live in Oslo.", "I like jazz.", "I moved to Bergen.", "What is the weather?") // without ids
	i.record(who, "mine", "I work at Fenwick Labs.")
	sel := of(scope.Scope{Project: scope.DefaultProject, User: who.User})
	i.settled(sel, 5)
	jazz := wantSome(t, i.facts(sel), "jazz")
	if _, err := i.api.Correct(t.Context(), jazz.ID, 0, api.Correct{Text: "The user likes modern jazz."}); err != nil {
		t.Fatal(err)
	}
	if _, err := i.api.Remember(t.Context(), api.Remember{Scope: api.Scope{User: who.User}, Text: "Nora has a cat."}, ""); err != nil {
		t.Fatal(err)
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	export, stderr, code := run(t, nil, "export", "--everything", "--data", i.data)
	if code != 0 {
		t.Fatalf("export: %d %s", code, stderr)
	}
	digest := func(data string) string {
		t.Helper()
		out, stderr, code := run(t, nil, "digest", "--data", data)
		if code != 0 {
			t.Fatalf("digest: %d %s", code, stderr)
		}
		return strings.TrimSpace(out)
	}
	want := digest(i.data)
	data := filepath.Join(t.TempDir(), "new")
	if out, stderr, code := run(t, strings.NewReader(export), "import", "--everything", "--data", data, "-"); code != 0 || !strings.Contains(out, "5 episodes") {
		t.Fatalf("import: %d %s %s", code, out, stderr)
	}
	if got := digest(data); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	again := start(t, data)
	e, err := again.api.Explain(t.Context(), jazz.ID)
	if err != nil || len(e.Episodes) != 1 || e.Episodes[0].Content != "I like jazz." || e.Fact.Text != "The user likes modern jazz." {
		t.Errorf("explain: %+v, %v", e, err)
	}
	again.say(who, "I moved to Tromsø.")
	again.settled(sel, 6)
	wantSome(t, again.facts(sel), "Tromsø")
	wantSome(t, again.facts(sel), "a cat")
	if _, stderr, code := run(t, strings.NewReader(export), "import", "--everything", "--data", data, "-"); code != 1 || !strings.Contains(stderr, "new directory") {
		t.Errorf("into a directory in use: %d %s", code, stderr)
	}
	forged, to := summed(export, strings.ReplaceAll(export, "The user likes modern jazz.", "The user likes modern rock.")), filepath.Join(t.TempDir(), "forged")
	if _, stderr, code := run(t, strings.NewReader(forged), "import", "--everything", "--data", to, "-"); code != 1 || !strings.Contains(stderr, "digest") {
		t.Errorf("an export that was changed: %d %s", code, stderr)
	}
	for _, name := range []string{"nats", "memory.db", "audit.db"} {
		if _, err := os.Stat(filepath.Join(to, name)); !os.IsNotExist(err) {
			t.Errorf("a failed import left %s, which the next start serves: %v", name, err)
		}
	}
	quiet := strings.Replace(export, `"reason":"new"`, `"reason":"old"`, 1) // no part of the memory store
	if _, stderr, code := run(t, strings.NewReader(quiet), "import", "--everything", "--data", to, "-"); quiet == export || code != 1 || !strings.Contains(stderr, "was changed") {
		t.Errorf("an export whose provenance was changed: %d %s", code, stderr)
	}
	cut := filepath.Join(t.TempDir(), "cut")
	half := export[:bytes.LastIndexByte([]byte(strings.TrimSpace(export)), '\n')]
	if _, stderr, code := run(t, strings.NewReader(half), "import", "--everything", "--data", cut, "-"); code != 1 || !strings.Contains(stderr, "not whole") {
		t.Errorf("a part of an export: %d %s", code, stderr)
	}
	if left, err := os.ReadDir(cut); err != nil || len(left) > 0 {
		t.Errorf("a failed import left %v, %v", left, err)
	}
}

// summed gives a changed export the sum of its own lines.
func summed(export, changed string) string {
	sum := func(text string) string {
		end := strings.LastIndexByte(strings.TrimSpace(text), '\n') + 1
		return fmt.Sprintf("%x", sha256.Sum256([]byte(text[:end])))
	}
	return strings.Replace(changed, sum(export), sum(changed), 1)
}

// TestP10ImportLeavesOutErasedUsers: an export from before an erasure, imported into the
// directory that remembers the erasure, brings nothing of the user back.
func TestP10ImportLeavesOutErasedUsers(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	nora, ben := person("nora"), person("ben")
	i.say(nora, "I live in Oslo.")
	i.say(ben, "I live in Rome.")
	i.settled(i.whole(), 2)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	export, stderr, code := run(t, nil, "export", "--everything", "--data", i.data)
	if code != 0 {
		t.Fatalf("export: %d %s", code, stderr)
	}
	if _, stderr, code := run(t, nil, "erase", "--yes", "--user", nora.User, "--data", i.data); code != 0 {
		t.Fatalf("erase: %d %s", code, stderr)
	}
	for _, name := range []string{"nats", "memory.db", "memory.db-wal", "memory.db-shm", "audit.db", "audit.db-wal", "audit.db-shm"} {
		if err := os.RemoveAll(filepath.Join(i.data, name)); err != nil {
			t.Fatal(err)
		}
	}
	out, stderr, code := run(t, strings.NewReader(export), "--json", "import", "--everything", "--data", i.data, "-")
	if code != 0 || !strings.Contains(out, `"erased": 2`) {
		t.Fatalf("import: %d %s %s", code, out, stderr)
	}
	again := start(t, i.data)
	again.settled(again.whole(), 1)
	if got := texts(again.facts(again.whole())); len(got) != 1 || !strings.Contains(got[0], "Rome") {
		t.Errorf("after the import: %q", got)
	}
}

// TestImportThatDiedIsNotServed: a start finds the mark of an import that was not
// compared with its export, removes what the import left, and says so.
func TestImportThatDiedIsNotServed(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	i.say(person("nora"), "I live in Oslo.")
	i.settled(i.whole(), 1)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(i.data, "import.unchecked"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, nil, "up", "--data", i.data, "--http", "127.0.0.1:0"); code != 1 || !strings.Contains(stderr, "import again") {
		t.Errorf("the first start: %d %s", code, stderr)
	}
	for _, name := range []string{"nats", "memory.db", "audit.db", "import.unchecked"} {
		if _, err := os.Stat(filepath.Join(i.data, name)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}

// TestNothingStartsDuringAnImport: a start in the directory of an import is refused and
// disturbs nothing.
func TestNothingStartsDuringAnImport(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	who := person("nora")
	i.say(who, "I live in Oslo.", "I like jazz.")
	i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), 2)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	export, stderr, code := run(t, nil, "export", "--everything", "--data", i.data)
	if code != 0 {
		t.Fatalf("export: exit %d: %s", code, stderr)
	}
	data := filepath.Join(t.TempDir(), "new")
	in, to := io.Pipe()
	imported := make(chan string, 1)
	go func() {
		out, stderr, code := run(t, in, "import", "--everything", "--data", data, "-")
		imported <- fmt.Sprintf("exit %d: %s%s", code, out, stderr)
	}()
	half := len(export) / 2
	if _, err := io.WriteString(to, export[:half]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the streams of the import", func() error { _, err := os.Stat(filepath.Join(data, "nats.import")); return err })
	if _, stderr, code := run(t, nil, "up", "--data", data, "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"); code == 0 || !strings.Contains(stderr, "an import is under way") {
		t.Errorf("up: exit %d: %s", code, stderr)
	}
	if _, err := io.WriteString(to, export[half:]); err != nil {
		t.Fatal(err)
	}
	_ = to.Close() // documented
	if got := <-imported; !strings.HasPrefix(got, "exit 0") {
		t.Errorf("import: %s", got)
	}
	again := start(t, data)
	again.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), 2)
	for _, name := range []string{"memory.db", "audit.db", "memory.db-wal"} {
		if info, err := os.Stat(filepath.Join(data, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
