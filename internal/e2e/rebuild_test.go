package e2e

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// rebuilt is what `palimpsest rebuild --json` says.
type rebuilt struct {
	Live, Rebuilt             string
	Episodes, Effects, Scopes int
	Moved                     int
	Switched                  bool
	Kept                      string
	LiveError                 string `json:"live_error"`
	OnlyLive                  int    `json:"only_live"`
	Lost                      loss
	ScopesOnlyLive            int `json:"scopes_only_live"`
}

type loss struct{ Episodes, Facts int }

// rebuild runs the command over the data directory of a stopped instance.
func rebuild(t testing.TB, data string, code int, args ...string) (out rebuilt) {
	t.Helper()
	stdout, stderr, exit := run(t, nil, append([]string{"--json", "rebuild", "--data", data}, args...)...)
	if exit != code {
		t.Fatalf("rebuild %v: exit %d, want %d: %s; it said %s", args, exit, code, stdout, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("rebuild says %q: %v; %s", stdout, err, stderr)
	}
	return out
}

// lives runs some of everything that changes facts: additions, changes, ends of
// facts and of sessions, commands, refused messages, in several scopes and two
// projects. It returns the number of episodes in the project default.
func (i *instance) lives() (episodes int) {
	t := i.t
	t.Helper()
	all := scripts(3, 16)
	i.tellAll(all, 0, nil)
	ann := person("ann")
	i.say(ann, "I live in Oslo.", "I moved to Bergen.", "I like Python.", "I no longer live in Bergen.", "My favourite colour is green.")
	i.publish(ann, "", map[string]any{"content": 7})
	i.publish(ann, "", map[string]any{"content": "hi", "role": "boss"})
	i.buried(2)
	i.envelope("end", events.SessionEnded{Scope: ann, Cause: events.EndExplicit})
	episodes = 3*16 + 5
	i.settled(everything("default"), episodes)
	i.settledBy("sleep", of(ann), 5)

	said, err := i.api.Remember(t.Context(), api.Remember{Scope: api.ScopeOf(ann), Text: "The door code is 4711."}, "once")
	if err != nil || len(said.Results) != 1 {
		t.Fatalf("remember: %+v, %v", said, err)
	}
	id := said.Results[0].ID
	if _, err := i.api.Correct(t.Context(), id, 0, api.Correct{Text: "The door code is 4712."}); err != nil {
		t.Fatal(err)
	}
	if _, err := i.api.Delete(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := i.api.Restore(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	other := scope.Scope{Project: "other", User: "ann"}
	i.say(other, "I live in Quito.")
	i.settled(everything("other"), 1)
	return episodes
}

// remains returns the data of an instance that must survive a rebuild: facts, and
// episodes by ordinal.
func (i *instance) remains() string {
	i.t.Helper()
	var out strings.Builder
	for _, project := range []string{"default", "other"} {
		out.WriteString(i.export(everything(project), false))
		for _, e := range i.recent(everything(project)) {
			fmt.Fprintf(&out, "%s %s %d %s %s\n", e.In(project), e.ID, e.Ordinal, e.Timestamp, e.Content)
		}
	}
	return out.String()
}

// TestP5RebuildEqualsLive: what the streams make of an empty store is what it
// takes the place of; of a rebuilt store as well.
func TestP5RebuildEqualsLive(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	episodes := i.lives()
	want := i.remains()
	live, err := i.api.Digest(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, 3, "in use by another process", "", "rebuild", "--data", i.data, "--check")
	refused(t, 3, "in use by another process", "", "digest", "--data", i.data)
	i.kill()

	offline, stderr, code := run(t, nil, "digest", "--data", i.data)
	if code != 0 || strings.TrimSpace(offline) != live.Digest {
		t.Errorf("digest of the stopped: %s, %s; of the running %s", offline, stderr, live.Digest)
	}
	check := rebuild(t, i.data, 0, "--check")
	if check.Live != live.Digest || check.Rebuilt != live.Digest || check.Episodes != episodes+1 || check.Scopes != 5 || check.Switched {
		t.Errorf("check: %+v, want digest %s", check, live.Digest)
	}
	switched := rebuild(t, i.data, 0)
	if switched.Live != live.Digest || switched.Rebuilt != live.Digest || !switched.Switched || switched.Kept != filepath.Join(i.data, "memory.db.old") {
		t.Errorf("switch: %+v, want digest %s", switched, live.Digest)
	}
	if again := rebuild(t, i.data, 0, "--check"); again != check {
		t.Errorf("the rebuilt one, checked: %+v, want %+v", again, check)
	}
	i.begin()
	if diff := cmp.Diff(want, i.remains()); diff != "" {
		t.Errorf("after the rebuild (-before +after):\n%s", diff)
	}
	// An answer that was given is given again, and life goes on.
	said, err := i.api.Remember(t.Context(), api.Remember{Scope: api.ScopeOf(person("ann")), Text: "The door code is 4711."}, "once")
	if err != nil || len(said.Results) != 1 || said.Results[0].Event != "ADD" {
		t.Errorf("the POST repeated: %+v, %v", said, err)
	}
	i.say(person("ann"), "I moved to Perth.")
	i.settled(everything("default"), episodes+1)
}

// TestP5CheckFindsWhatDiffers: a row that was changed behind the program's back
// is an exit code and two digests.
func TestP5CheckFindsWhatDiffers(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	i.say(person("ann"), "I live in Oslo.", "I like Python.")
	i.settled(everything("default"), 2)
	i.kill()
	tamper(t, filepath.Join(i.data, "memory.db"), `UPDATE facts SET body = replace(body, 'Oslo', 'Rome')`)
	if out := rebuild(t, i.data, 1, "--check"); out.Live == out.Rebuilt || out.Live == "" || out.Rebuilt == "" {
		t.Errorf("check: %+v", out)
	}
	if out := rebuild(t, i.data, 0); !out.Switched {
		t.Errorf("rebuild: %+v", out)
	}
	rebuild(t, i.data, 0, "--check")
	tamper(t, filepath.Join(i.data, "memory.db"), `DELETE FROM episodes WHERE ordinal = 1`)
	if out := rebuild(t, i.data, 1, "--check"); out.Live != out.Rebuilt {
		t.Errorf("check: %+v", out)
	}
	for _, left := range []string{"memory.db.new", "memory.db.new-wal", "memory.db-wal"} {
		if _, err := os.Stat(filepath.Join(i.data, left)); err == nil {
			t.Errorf("%s is left", left)
		}
	}
}

// tamper changes a database behind the program's back.
func tamper(t testing.TB, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec(statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s: %d rows, %v", statement, n, err)
	}
}
