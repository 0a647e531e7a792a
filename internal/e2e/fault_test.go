package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// hold takes the write lock of one of the program's SQLite files, as another
// process might: no write of the program succeeds until let is called.
func (i *process) hold(name string) (let func()) {
	i.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(i.data, name)+"?_pragma=busy_timeout(30000)")
	if err != nil {
		i.t.Fatal(err)
	}
	conn, err := db.Conn(i.t.Context())
	if err == nil {
		_, err = conn.ExecContext(i.t.Context(), "BEGIN IMMEDIATE")
	}
	if err != nil {
		i.t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.WithoutCancel(i.t.Context()), "ROLLBACK"); err != nil {
			i.t.Error(err)
		}
		_ = conn.Close()
		_ = db.Close()
	}
}

// unready waits until readiness names a dependency.
func (i *instance) unready(check string) {
	i.t.Helper()
	eventually(i.t, check+" is not ready", func() error {
		r, err := i.api.Ready(i.t.Context())
		if err == nil || r.Checks[check].OK {
			return fmt.Errorf("readiness %+v, %w", r, err)
		}
		return nil
	})
}

func (i *instance) readyAgain() {
	i.t.Helper()
	eventually(i.t, "ready", func() error { _, err := i.api.Ready(i.t.Context()); return err })
}

// TestP7FaultMemoryStoreTakesNoWrite locks the store under the program: episodes
// are acknowledged and wait in the stream, reads go on, a request that must write
// is answered with 503, and the backlog is processed without an operator.
func TestP7FaultMemoryStoreTakesNoWrite(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	ann := person("ann")
	i.say(ann, "I live in Oslo.")
	i.settled(of(ann), 1)
	let := i.hold("memory.db")
	for n := range 20 {
		i.say(ann, turn(fmt.Sprintf("I like number %d.", n)))
	}
	i.say(ann, "I moved to Rome.")
	i.unready("memory")
	wantOne(t, i.facts(of(ann)), "Oslo")
	if r, err := i.api.Search(t.Context(), api.Search{Selector: api.Selector{User: &ann.User}, Text: "Oslo"}); err != nil || len(r.Results) == 0 {
		t.Errorf("search: %+v, %v", r, err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.HTTP+"/v1/facts", strings.NewReader(`{"user": "ann", "text": "Ann has a cat."}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a write is answered %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	let()
	i.settled(of(ann), 22)
	wantOne(t, i.factsWith(of(ann), "lives in"), "Rome")
	i.readyAgain()
	if letters := i.buried(0); len(letters) > 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// factsWith lists what is valid of a scope and holds words.
func (i *instance) factsWith(sel scope.Selector, words string) []api.Fact {
	i.t.Helper()
	var out []api.Fact
	for _, f := range i.facts(sel) {
		if strings.Contains(f.Text, words) {
			out = append(out, f)
		}
	}
	return out
}

// logged counts the effects that the audit log holds.
func (i *process) logged() (n int, err error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(i.data, "audit.db")+"?mode=ro")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(i.t.Context(), "SELECT count(*) FROM effects").Scan(&n)
	return n, err
}

// allLogged waits until the audit log holds every effect that AUDIT does.
func (i *process) allLogged(sel scope.Selector) {
	i.t.Helper()
	want := 0
	for _, err := range i.project(sel).Audit(i.t.Context(), sel, 0) {
		if err != nil {
			i.t.Fatal(err)
		}
		want++
	}
	eventually(i.t, fmt.Sprintf("%d effects are logged", want), func() error {
		if n, err := i.logged(); err != nil || n != want || want == 0 {
			return fmt.Errorf("%d are, %w", n, err)
		}
		return nil
	})
}

// known is the texts that a fact's history leads through.
func (i *instance) known(who scope.Selector, words string) []string {
	i.t.Helper()
	facts := i.factsWith(who, words)
	if len(facts) != 1 {
		i.t.Fatalf("%d facts with %q: %v", len(facts), words, texts(facts))
	}
	h, err := i.api.History(i.t.Context(), facts[0].ID)
	if err != nil {
		i.t.Fatal(err)
	}
	var out []string
	for _, c := range h.Changes {
		out = append(out, c.NewMemory)
	}
	return out
}

// TestP7FaultAuditLogTakesNoWrite locks the audit log: memory goes on, history
// is read from AUDIT, and the log catches up when it can.
func TestP7FaultAuditLogTakesNoWrite(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	ann := person("ann")
	i.say(ann, "I live in Oslo.")
	i.settled(of(ann), 1)
	i.allLogged(of(ann))
	let := i.hold("audit.db")
	i.say(ann, "I moved to Rome.")
	i.settled(of(ann), 2)
	i.unready("audit")
	if got := i.known(of(ann), "Rome"); len(got) == 0 {
		t.Error("no history of a fact that the log cannot have yet")
	}
	let()
	i.allLogged(of(ann))
	i.readyAgain()
}

// TestP7FaultAuditLogFileVanishes removes the audit log under the program: it
// ends at once with the path, and the log is whole again after the next start.
func TestP7FaultAuditLogFileVanishes(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	ann := person("ann")
	for _, place := range []string{"Oslo", "Rome", "Bonn"} {
		i.say(ann, turn("I live in "+place+"."))
	}
	i.settled(of(ann), 3)
	i.allLogged(of(ann))
	want := i.known(of(ann), "Bonn")
	path := filepath.Join(i.data, "audit.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if code, said := i.ended(); code != 1 || !strings.Contains(said, path) {
		t.Errorf("exit %d, said %q", code, said)
	}
	i.begin()
	i.allLogged(of(ann))
	if got := i.known(of(ann), "Bonn"); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("history %v, want %v", got, want)
	}
}

// TestP7TheStoreFileVanishes takes the memory's file away under the running
// program, which must not go on as if its writes were kept.
func TestP7TheStoreFileVanishes(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	i.say(person("ann"), "I live in Oslo")
	i.settled(of(person("ann")), 1)
	path := filepath.Join(i.data, "memory.db")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	code, said := i.ended()
	if code != 1 || !strings.Contains(said, path) {
		t.Errorf("exit %d, said %q", code, said)
	}
	if err := os.Remove(path); err == nil {
		t.Error("it made another file in its place")
	}
	// Recovery needs nothing but the file.
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	i.begin()
	wantOne(t, i.facts(of(person("ann"))), "Oslo")
}
