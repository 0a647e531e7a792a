package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

// remote are the arguments of a command that is meant for the instance.
func (i *instance) remote(args ...string) []string {
	return append([]string{"--server", i.HTTP, "--project", i.whole().Project}, args...)
}

// cli runs a command against the instance, which must succeed.
func (i *instance) cli(stdin string, args ...string) string {
	i.t.Helper()
	stdout, stderr, code := run(i.t, strings.NewReader(stdin), i.remote(args...)...)
	if code != 0 || stderr != "" {
		i.t.Fatalf("%v: exit %d: %s", args, code, stderr)
	}
	return stdout
}

// theCommandLine tells, reads and mends by commands alone.
func theCommandLine(t *testing.T, i *instance) {
	out := i.cli("I live in Oslo.\n\nI like Python.\n", "publish", "--user", "ann", "--agent", "assistant", "--nats", i.NATS)
	if out != "2 published\n" {
		t.Errorf("publish says %q", out)
	}
	// Two users may use one id at one time.
	out = i.cli(`{"id": "1", "user": "ben", "content": "I live in Rome."}
{"id": "1", "user": "eve", "content": "I live in Bonn.", "timestamp": "2024-05-01T10:00:00+02:00", "metadata": {"channel": "mail"}}
{"id": "1", "user": "ben", "content": "I live in Rome."}
`, "--json", "publish", "--nats", i.NATS)
	if !strings.Contains(out, `"published": 3`) {
		t.Errorf("publish says %q", out)
	}
	users := map[string]int{"ann": 2, "ben": 1, "eve": 1}
	for user, n := range users {
		i.settled(of(i.person(user)), n)
	}
	i.reads()
	i.mends()
	i.changes()
}

// reads runs every reading command, for people and as JSON.
func (i *instance) reads() {
	t := i.t
	t.Helper()
	f := i.facts(of(i.person("ann")))[0]
	for _, args := range [][]string{
		{"search", "where do I live", "--user", "ann"},
		{"search", "Oslo", "--explain", "--all-users"},
		{"episodes", "--user", "ann"},
		{"facts", "--user", "ann"},
		{"facts", f.ID},
		{"facts", f.ID, "--revision", "1"},
		{"history", f.ID},
		{"timeline", "user", "--user", "ann"},
		{"explain", f.ID},
		{"explain", ending(f.ID)},
		{"ledger", "--all-users"},
		{"ledger", "--accounts", "--all-users"},
		{"deadletter", "list"},
		{"replay", "--all-users"},
		{"export", "--all-users"},
		{"digest"},
		{"export", "--content", "--user", "ann"},
		{"topology", "show"},
		{"config", "print"},
		{"version"},
	} {
		if out := i.cli("", args...); strings.TrimSpace(out) == "" {
			t.Errorf("%v says nothing", args)
		}
		out := i.cli("", append([]string{"--json"}, args...)...)
		for d, n := json.NewDecoder(strings.NewReader(out)), 0; d.More(); n++ {
			var v any
			if err := d.Decode(&v); err != nil || n == 0 && v == nil {
				t.Errorf("%v --json: %v: %.200s", args, err, out)
				break
			}
		}
	}
	if out := i.cli("", "explain", f.ID); !strings.Contains(out, f.Text) || !strings.Contains(out, "decided: ADD (new)") {
		t.Errorf("explain says %s", out)
	}
	refused(t, 1, "not_found", "", i.remote("facts", "nobody-knows")...)
	for _, args := range [][]string{{"facts"}, {"search", "Oslo"}, {"ledger"}, {"replay"}, {"export"}, {"holds", "list"}, {"report", "yield"}} {
		refused(t, 1, "--all-users", "", i.remote(args...)...)
	}
}

// mends handles dead letters by command.
func (i *instance) mends() {
	t := i.t
	t.Helper()
	ann := i.person("ann")
	i.publish(ann, "", map[string]any{"content": 7})
	i.publish(ann, "", map[string]any{"content": "hi", "role": "boss"})
	var letters []api.DeadLetter
	for _, l := range i.buried(2) {
		show := i.cli("", "deadletter", "show", strconv.FormatUint(l.Sequence, 10))
		if !strings.Contains(show, l.Reason) || !strings.Contains(show, "content") {
			t.Errorf("show says %s", show)
		}
		letters = append(letters, l)
	}
	first, second := strconv.FormatUint(letters[0].Sequence, 10), strconv.FormatUint(letters[1].Sequence, 10)
	if out := i.cli("", "deadletter", "drop", second); out != "dropped "+second+"\n" {
		t.Errorf("drop says %q", out)
	}
	if out := i.cli("", "deadletter", "retry", first); out != "retried "+first+"\n" {
		t.Errorf("retry says %q", out)
	}
	// Its remaining error makes a dead letter of its own.
	eventually(t, "the retried letter is refused again", func() error {
		page, err := i.api.DeadLetters(t.Context(), client.ListLetters{Limit: 10})
		if err != nil {
			return err
		}
		if len(page.Letters) != 1 || page.Letters[0].Sequence <= letters[1].Sequence || page.Letters[0].Field != "content" {
			return fmt.Errorf("letters: %+v", page.Letters)
		}
		return nil
	})
	for _, verb := range []string{"show", "retry", "drop"} {
		refused(t, 1, "not_found", "", i.remote("deadletter", verb, second)...)
	}
	i.mendsAll()
}

// mendsAll narrows what it lists, retries and drops.
func (i *instance) mendsAll() {
	t := i.t
	t.Helper()
	ben := i.person("ben")
	i.publish(ben, "", map[string]any{"content": 8})
	i.buried(2)
	letter := func(args ...string) string {
		return i.cli("", append([]string{"deadletter"}, args...)...)
	}
	for want, args := range map[int][]string{
		1 + 2: {"list"}, 1 + 1: {"list", "--user", "ben", "--service", "ingest", "--code", "invalid_field"}, 1: {"list", "--service", "decider"},
	} {
		if out := letter(args...); lines(out) != want {
			t.Errorf("%v: %s", args, out)
		}
	}
	if out := letter("retry", "--all", "--user", "ben"); lines(out) != 1 || !strings.HasPrefix(out, "retried ") {
		t.Errorf("retry --all says %q", out)
	}
	eventually(t, "ben's letter is refused again", func() error {
		if out := letter("list", "--user", "ben"); lines(out) != 2 {
			return fmt.Errorf("letters: %s", out)
		}
		return nil
	})
	if out := letter("drop", "--all"); lines(out) != 2 {
		t.Errorf("drop --all says %q", out)
	}
	if out := letter("drop", "--all"); out != "" {
		t.Errorf("drop --all of nothing says %q", out)
	}
	for _, args := range [][]string{{"retry"}, {"drop", "1", "--all"}, {"retry", "1", "--user", "ann"}} {
		if _, _, code := run(t, strings.NewReader(""), i.remote(append([]string{"deadletter"}, args...)...)...); code != 2 {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}

func lines(out string) int { return strings.Count(out, "\n") }

// TestTheOperatorsCommands reach beyond one tenant, and to the streams of a data
// directory.
func TestTheOperatorsCommands(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	other := person("ann")
	other.Project = "other"
	i.publish(person("ann"), "", map[string]any{"content": 7})
	i.publish(other, "", map[string]any{"content": 8})
	if _, err := i.js.Publish(t.Context(), "palimpsest.episodes._.ann._._", []byte(`{"content": "x"}`)); err != nil {
		t.Fatal(err)
	}
	i.buried(3)
	i.wantMetrics("palimpsest_dead_letters 3")
	for want, args := range map[int][]string{1 + 1: {"list"}, 1 + 3: {"list", "--everywhere"}} {
		if out := i.cli("", append([]string{"deadletter"}, args...)...); lines(out) != want {
			t.Errorf("%v: %s", args, out)
		}
	}
	if out := i.cli("", "deadletter", "drop", "--all", "--everywhere"); lines(out) != 3 {
		t.Errorf("drop --all --everywhere says %q", out)
	}
	if out := i.cli("", "--json", "topology", "diff", "--data", i.data); strings.TrimSpace(out) != "[]" && strings.TrimSpace(out) != "null" {
		t.Errorf("topology diff says %s", out)
	}
	refused(t, 1, "not running", "", "topology", "diff", "--data", filepath.Join(t.TempDir(), "empty"))
}
