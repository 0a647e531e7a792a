package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/topology"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// marker stands in every text and name of the user whom the tests erase. As a word
// it is indexed, as a name it is the subject of facts.
const marker = "zqmarkerzq"

func marked(name string) scope.Scope {
	return scope.Scope{Project: scope.DefaultProject, User: marker + name, Agent: "agent-" + marker, Session: "session-" + marker}
}

// mark lets the marked user live: over NATS and HTTP, with facts, changes of facts,
// commands, dead letters and a session's end. It returns how many episodes it said.
func (i *process) mark(who scope.Scope, n int) int {
	t := i.t
	t.Helper()
	for k := range n {
		i.publish(who, fmt.Sprintf("id-%s-%d", marker, k), map[string]any{
			"content":  fmt.Sprintf("I live in %stown%d. I like %stea%d.", marker, k, marker, k),
			"metadata": map[string]any{"key-" + marker: marker},
		})
	}
	i.publish(who, "", map[string]any{"content": 7, "metadata": map[string]any{"bad": marker}})
	i.publish(who, "", map[string]any{"content": "hi " + marker, "role": "boss"})
	i.envelope("end-"+marker, events.SessionEnded{Scope: who, Cause: events.EndExplicit})
	body := fmt.Sprintf(`{"user":%q,"agent":%q,"session":%q,"messages":[{"role":"user","content":"My name is %s."}]}`,
		who.User, who.Agent, who.Session, marker)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.HTTP+"/v1/episodes?wait=true", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "key-"+marker)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode >= 300 {
		t.Fatalf("POST /v1/episodes: %s", res.Status)
	}
	i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), n+1)
	said, err := i.api.Remember(t.Context(), api.Remember{Scope: api.ScopeOf(who), Text: "The password is " + marker + "."}, "remember-"+marker)
	if err != nil || len(said.Results) != 1 {
		t.Fatalf("remember: %+v, %v", said, err)
	}
	if _, err := i.api.Correct(t.Context(), said.Results[0].ID, 0, api.Correct{Text: "The password was " + marker + "."}); err != nil {
		t.Fatal(err)
	}
	return n + 1
}

// crowded lets others live, and returns how many messages the user says who is erased: 40
// beside four others, with E2E_FULL 1,000 beside 54.
func (i *instance) crowded() int {
	i.lives()
	if os.Getenv(fullEnv) == "" {
		return 40
	}
	for n := range 50 {
		other := person(fmt.Sprintf("other-%d", n))
		i.say(other, turn(fmt.Sprintf("I live in Oslo. I have %d cats.", n+2)), "I like jazz.")
		i.settled(of(other), 2)
	}
	return 1000
}

// traces returns the files below a directory in which the marker stands in clear.
func traces(t testing.TB, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if at := bytes.Index(bytes.ToLower(raw), []byte(marker)); at >= 0 || strings.Contains(path, marker) {
			out = append(out, fmt.Sprintf("%s: %q", strings.TrimPrefix(path, dir), raw[max(0, at-20):min(len(raw), at+30)]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantNoTrace(t testing.TB, dir string) {
	t.Helper()
	if left := traces(t, dir); len(left) > 0 {
		t.Errorf("the marker is in %d files: %s", len(left), strings.Join(left, "; "))
	}
}

// erase runs the command and returns the receipt, which it also checks and keeps in
// a file.
func erase(t testing.TB, args ...string) (r api.Receipt, file string) {
	t.Helper()
	stdout, stderr, code := run(t, nil, append([]string{"--json", "erase"}, args...)...)
	if code != 0 {
		t.Fatalf("erase %v: exit %d: %s", args, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("erase says %q: %v", stdout, err)
	}
	file = filepath.Join(t.TempDir(), "receipt.json")
	write(t, file, []byte(stdout))
	if stdout, stderr, code := run(t, nil, "verify-receipt", file); code != 0 || !strings.Contains(stdout, "genuine") {
		t.Errorf("verify-receipt: exit %d: %s%s", code, stdout, stderr)
	}
	return r, file
}

// removed adds up what a receipt says of one kind.
func removed(r api.Receipt, kind string) (n uint64) {
	for _, p := range r.Places {
		n += p.Removed[kind]
	}
	return n
}

// TestP10ErasedUserIsNowhere: a user among others is erased while Palimpsest runs.
// No file holds a byte of the user, the others are as they were, a rebuild brings
// nothing back, and the user may begin anew.
func TestP10ErasedUserIsNowhere(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	said := i.crowded()
	others := i.remains()
	who := marked("")
	episodes := i.mark(who, said)
	i.buried(4)
	if len(traces(t, i.data)) == 0 {
		t.Fatal("the marker is not there to begin with")
	}

	r, file := erase(t, "--server", i.HTTP, "--user", who.User, "--yes")
	if n := removed(r, "episodes"); n != uint64(episodes) {
		t.Errorf("the receipt counts %d episodes, want %d", n, episodes)
	}
	// Two of the messages are dead letters, one ended the session.
	if n := removed(r, "EPISODES"); n != uint64(episodes+3) {
		t.Errorf("the receipt counts %d messages of EPISODES, want %d", n, episodes+3)
	}
	if n := removed(r, "DEADLETTER"); n != 2 {
		t.Errorf("the receipt counts %d dead letters, want 2", n)
	}
	if raw, err := os.ReadFile(file); err != nil || strings.Contains(string(raw), marker) {
		t.Errorf("the receipt names the user: %s, %v", raw, err)
	}
	forged := bytes.Replace(readFile(t, file), []byte(`"left": 0`), []byte(`"left": 1`), 1)
	write(t, file, forged)
	if _, _, code := run(t, nil, "verify-receipt", file); code == 0 {
		t.Error("a changed receipt verifies")
	}

	eventually(t, "an answer behind the erasure", func() error { _, err := i.api.Ledger(t.Context(), everything("default"), false); return err })
	if got := i.remains(); got != others {
		t.Errorf("the others are\n%s\nand were\n%s", got, others)
	}
	i.buried(2)
	record := i.auditStream()
	told, err := record.GetLastMsgForSubject(t.Context(), "palimpsest.audit.*."+r.Whom+"._._")
	if err != nil || told.Header.Get("ce-type") != string(events.KindUserErased) || !strings.Contains(string(told.Data), r.ID) {
		t.Errorf("AUDIT says %+v of the erasure: %v", told, err)
	}
	i.kill()
	wantNoTrace(t, i.data)
	out := rebuild(t, i.data, 0)
	if out.Live != out.Rebuilt {
		t.Errorf("a rebuild makes %s of %s", out.Rebuilt, out.Live)
	}
	wantNoTrace(t, i.data)

	i.begin()
	if got := i.remains(); got != others {
		t.Errorf("behind a rebuild the others are\n%s\nand were\n%s", got, others)
	}
	i.say(who, "I live in Turin.")
	i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), 1)
	if facts := i.facts(scope.Under(scope.Scope{Project: who.Project, User: who.User})); len(facts) != 1 {
		t.Errorf("%d facts are known of the user who came back, want 1", len(facts))
	}
	if again, _ := erase(t, "--server", i.HTTP, "--user", who.User, "--yes"); again.Incarnation != 2 || again.Whom != r.Whom {
		t.Errorf("the second erasure has incarnation %d of %s, want 2 of %s", again.Incarnation, again.Whom, r.Whom)
	}
}

// auditStream is AUDIT, read with the credential of the data directory.
func (i *process) auditStream() jetstream.Stream {
	i.t.Helper()
	to, err := broker.Endpoint(filepath.Join(i.data, "nats"))
	if err != nil {
		i.t.Fatal(err)
	}
	conn, err := broker.Connect(i.t.Context(), to)
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		i.t.Fatal(err)
	}
	stream, err := js.Stream(i.t.Context(), topology.StreamAudit)
	if err != nil {
		i.t.Fatal(err)
	}
	return stream
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestP10TheOldestUserIsErased: the first messages of every stream are gone. The
// others are whole all the same: rebuilt, and exported with everything. What the user
// says on restored streams, which count on from lower sequences, is kept.
func TestP10TheOldestUserIsErased(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	who := marked("")
	i.say(who, "I live in "+marker+"town.")
	i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), 1)
	other := person("nora")
	i.say(other, "I live in Oslo.", "I like jazz.")
	of := scope.Under(scope.Scope{Project: other.Project, User: other.User})
	i.settled(of, 2)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(i.data)); err != nil {
		t.Fatal(err)
	}
	i.begin()
	for range 3 { // these count the sequences of EPISODES up, and the backup lacks them
		i.say(other, "Good morning.")
	}
	i.settled(of, 5)
	if _, stderr, code := run(t, nil, "erase", "--data", i.data, "--user", other.User, "--yes"); code == 0 || !strings.Contains(stderr, "stop Palimpsest") {
		t.Errorf("data in use are erased: exit %d: %s", code, stderr)
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	for _, draft := range []string{"memory.db.new", "memory.db.old", "nats.import/1.blk"} { // a killed run left them
		path := filepath.Join(i.data, draft)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, []byte(marker))
	}
	_, file := erase(t, "--data", i.data, "--user", who.User, "--yes")
	wantNoTrace(t, i.data)
	if out := rebuild(t, i.data, 0); out.Live != out.Rebuilt {
		t.Errorf("a rebuild makes %s of %s", out.Rebuilt, out.Live)
	}
	export, stderr, code := run(t, nil, "export", "--everything", "--data", i.data)
	if code != 0 {
		t.Fatalf("export: exit %d: %s", code, stderr)
	}
	if out, stderr, code := run(t, strings.NewReader(export), "import", "--everything", "--data", filepath.Join(t.TempDir(), "new"), "-"); code != 0 {
		t.Errorf("import: exit %d: %s%s", code, out, stderr)
	}
	i.begin()
	if n := len(i.facts(of)); n != 2 {
		t.Errorf("%d facts are known of the other user, want 2", n)
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}

	erase(t, "--data", backup, "--apply", file)
	wantNoTrace(t, backup)
	i.data = backup
	i.begin()
	i.say(who, "I live in Turin.")
	i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), 1)
}
