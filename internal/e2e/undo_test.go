package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// undoTakesBack undoes a message, the undo, and what a later message touched.
func undoTakesBack(t *testing.T, i *instance) {
	eve, bob := i.person("eve"), i.person("bob")
	for _, who := range []scope.Scope{eve, bob} {
		i.tells(who, "m1", "I live in Oslo.", 1)
		i.tells(who, "poison", "I moved to Paris. I work at Fenwick.", 2)
	}
	i.tells(bob, "m3", "I moved to Bergen.", 3)
	i.settled(of(eve), 2)
	i.settled(of(bob), 3)
	poisoned := i.standing(of(eve))

	choose := api.Undo{User: &eve.User, Episode: messageID(eve, "poison"), DryRun: true}
	if out := i.undo(choose); len(out.Undo.Changes) != 2 || len(out.Undo.Conflicts) != 0 || out.CorrelationID != "" {
		t.Errorf("the preview: %+v", out.Undo)
	}
	if d := cmp.Diff(poisoned, i.standing(of(eve))); d != "" {
		t.Errorf("a preview changed memory: %s", d)
	}
	choose.DryRun = false
	undone := i.undo(choose)
	if got := texts(i.facts(of(eve))); len(got) != 1 || !strings.Contains(got[0], "Oslo") {
		t.Errorf("after the undo: %q", got)
	}
	if again := i.undo(choose); len(again.Undo.Changes)+len(again.Undo.Conflicts) != 0 || again.At == "" {
		t.Errorf("undone twice: %+v", again.Undo)
	}
	i.undo(api.Undo{Request: undone.CorrelationID})
	if d := cmp.Diff(poisoned, i.standing(of(eve))); d != "" {
		t.Errorf("undo of the undo: %s", d)
	}

	choose.User, choose.Episode = &bob.User, messageID(bob, "poison")
	kept := i.undo(choose)
	if c := kept.Undo.Conflicts; len(c) != 1 || !strings.Contains(c[0].Memory, "Bergen") || len(c[0].Later) == 0 || !slices.Contains(c[0].Later[0].Sources, messageID(bob, "m3")) {
		t.Errorf("conflicts: %+v; want the move to Bergen by m3", kept.Undo)
	}
	if got := texts(i.facts(of(bob))); len(got) != 1 || !strings.Contains(got[0], "Bergen") {
		t.Errorf("beside a conflict: %q", got)
	}
	choose.Include = []string{kept.Undo.Conflicts[0].ID}
	i.undo(choose)
	if got := texts(i.facts(of(bob))); len(got) != 1 || !strings.Contains(got[0], "Oslo") {
		t.Errorf("with the conflict included: %q", got)
	}
	if _, err := i.api.Undo(t.Context(), api.Undo{Request: "nobody-asked"}); err == nil || !strings.Contains(err.Error(), "not_found") {
		t.Errorf("an unknown request: %v", err)
	}
	out := i.cli("", "undo", "--episode", messageID(eve, "m1"), "--user", eve.User, "--dry-run")
	if !strings.Contains(out, "0 to change, 1 conflicts") {
		t.Errorf("the command says %s", out)
	}
}

// tells records one message with an id and a time of its own.
func (i *instance) tells(who scope.Scope, id, content string, minute int) {
	i.t.Helper()
	at := time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC)
	i.publish(who, messageID(who, id), map[string]any{"content": content, "timestamp": at})
}

// messageID is the id of a message: the stream takes each id once.
func messageID(who scope.Scope, id string) string { return who.Project + "-" + who.User + "-" + id }

func (i *instance) undo(choose api.Undo) api.Written {
	i.t.Helper()
	out, err := i.api.Undo(i.t.Context(), choose)
	if err != nil {
		i.t.Fatal(err)
	}
	if out.Status != "done" || out.Undo == nil {
		i.t.Fatalf("undo answers %+v", out)
	}
	return out
}

// standing is the content export of the present state: facts that are not closed,
// edges between entities that are not, and held candidates; without their places in the
// history.
func (i *instance) standing(sel scope.Selector) (out []string) {
	i.t.Helper()
	for raw, err := range i.api.Export(i.t.Context(), sel, true) {
		if err != nil {
			i.t.Fatal(err)
		}
		var line map[string]any
		if err := json.Unmarshal(raw, &line); err != nil {
			i.t.Fatal(err)
		}
		_, closed := line["valid_until"]
		holds := line["kind"] == "fact" || line["kind"] == "hold" || line["kind"] == "edge" && line["type"] == "relation"
		if !holds || closed {
			continue
		}
		delete(line, "revision")
		delete(line, "supersedes")
		text, err := json.Marshal(line)
		if err != nil {
			i.t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

// TestUndoOfOneAmongMany undoes one message among others of many users: the facts
// afterwards are those of a store that never had it. With E2E_FULL it is one among
// 10,000.
func TestUndoOfOneAmongMany(t *testing.T) {
	t.Parallel()
	users, each := 8, 25
	if full() {
		users, each = 50, 200
	}
	tell := func(i *instance, poison bool) []string {
		for u := range users {
			who := i.person(fmt.Sprintf("user-%02d", u))
			all := each
			for n := range each {
				i.tells(who, fmt.Sprintf("m%d", n), phrase(u, n), n)
				if poison && u == users/2 && n == each/2 {
					i.tells(who, "poison", "I moved to Paris. I work at Fenwick. I like turnips.", n)
					all++
				}
			}
			i.settled(of(who), all)
		}
		if poison {
			begun := time.Now()
			out := i.undo(api.Undo{Episode: messageID(i.person(fmt.Sprintf("user-%02d", users/2)), "poison")})
			if len(out.Undo.Changes) == 0 || len(out.Undo.Conflicts) != 0 {
				t.Errorf("the undo: %+v", out.Undo)
			}
			t.Logf("1 of %d messages undone after %v: %d changes", users*each+1, since(begun), len(out.Undo.Changes))
		}
		return i.standing(i.whole())
	}
	clean := tell(start(t, t.TempDir()).instance, false)
	undone := tell(start(t, t.TempDir()).instance, true)
	if d := cmp.Diff(clean, undone); d != "" || len(clean) < users*each/2 {
		t.Errorf("%d lines; what holds differs: %s", len(clean), d)
	}
}

// phrase is the n-th message of a user, who lives somewhere from the first on.
func phrase(u, n int) string {
	switch n {
	case 0:
		return "I live in Oslo."
	case 1:
		return "I work at Tarn."
	}
	return fmt.Sprintf("I like the band %s %s.", syllables(u), syllables(n))
}

// syllables spells a number as a name.
func syllables(n int) string {
	name := ""
	for {
		name += []string{"ba", "de", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu"}[n%10]
		if n /= 10; n == 0 {
			return strings.ToUpper(name[:1]) + name[1:]
		}
	}
}

// quarantines withdraws what rests on a session alone, holds what it says next, and
// brings both back.
func quarantines(t *testing.T, i *instance) {
	eve := i.person("eve")
	bad := eve
	bad.Session = "bad"
	i.tells(eve, "m1", "I live in Oslo.", 1)
	i.settled(of(eve), 1)
	i.tells(eve, "m2", "I like jazz.", 2)
	i.settled(of(eve), 2)
	i.tells(bad, "p1", "I like jazz. I work at Fenwick.", 3)
	i.tells(bad, "p2", "I moved to Paris.", 4)
	i.settled(of(eve), 4)
	all := i.standing(of(eve))

	begun, err := i.api.Quarantine(t.Context(), api.Quarantine{Session: "bad"})
	if err != nil || begun.Status != "done" {
		t.Fatalf("%+v, %v", begun, err)
	}
	if got := texts(i.facts(of(eve))); len(got) != 2 || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "Oslo") }) ||
		!slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "jazz") }) {
		t.Errorf("in quarantine: %q; want Oslo, and jazz, which another message supports", got)
	}
	if _, err := i.api.Quarantine(t.Context(), api.Quarantine{Session: "bad"}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second quarantine of the session: %v", err)
	}
	i.tells(bad, "p3", "I like turnips.", 5)
	i.tells(eve, "m3", "I like chess.", 6)
	i.settled(of(eve), 6)
	got := strings.Join(texts(i.facts(of(eve))), " ")
	if strings.Contains(got, "turnips") || !strings.Contains(got, "chess") {
		t.Errorf("said in quarantine, and beside it: %s", got)
	}

	marked, err := i.api.Holds(t.Context(), of(eve), 100, "")
	if err != nil || !slices.ContainsFunc(marked.Holds, func(h api.Hold) bool { return h.Why == "quarantine" }) {
		t.Fatalf("held: %+v, %v", marked, err)
	}
	for _, h := range marked.Holds {
		if _, err := i.api.Dismiss(t.Context(), h.ID); h.Why == "quarantine" && (err == nil || !strings.Contains(err.Error(), "mark of a quarantine")) {
			t.Errorf("its mark is dismissed: %v", err)
		}
	}
	undone := i.undo(api.Undo{User: &eve.User, Episode: messageID(eve, "m3")})
	if _, err := i.api.Trust(t.Context(), undone.CorrelationID); err == nil || !strings.Contains(err.Error(), "not_found") {
		t.Errorf("the release of what is no quarantine: %v", err)
	}
	i.undo(api.Undo{Request: undone.CorrelationID})
	if out, err := i.api.Trust(t.Context(), begun.CorrelationID); err != nil || out.Status != "done" {
		t.Fatalf("release: %+v, %v", out, err)
	}
	eventually(t, "the facts of the session", func() error {
		now := i.standing(of(eve))
		for _, line := range all {
			if !slices.Contains(now, line) {
				return fmt.Errorf("%s is missing in %s", line, now)
			}
		}
		return nil
	})
	if out := i.cli("", "quarantine", "--session", "bad"); !strings.Contains(out, "--release ") {
		t.Errorf("the command says %s", out)
	}
	if _, err := i.api.Quarantine(t.Context(), api.Quarantine{SourceNode: "nowhere"}); err == nil || !strings.Contains(err.Error(), "not_found") {
		t.Errorf("an unknown source: %v", err)
	}
}
