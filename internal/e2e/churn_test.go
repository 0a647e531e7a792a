package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// town is the n-th of many places to move to.
func town(n int) string {
	first := []string{"Ash", "Birch", "Cedar", "Elm", "Fern", "Gorse", "Heath", "Ivy"}
	last := []string{"bury", "ford", "ham", "ley", "mouth", "stead", "ton", "wick"}
	return first[n/8%8] + last[n%8]
}

// runawayUpdates states forty moves in a row, as a client in a loop would.
func runawayUpdates(t *testing.T, i *instance) {
	const moves, limit = 40, 20
	who := i.person("ann")
	sel := of(who)
	for n := range moves {
		i.say(who, turn("I moved to "+town(n)+"."))
	}
	i.settled(sel, moves)
	f := wantOne(t, i.facts(sel), town(limit))
	if f.Revision != limit+1 {
		t.Errorf("revision %d after %d changes", f.Revision, limit)
	}
	h := wantHeld(t, i, sel, town(moves-1))
	if h.FactID != f.ID || h.Count != moves-limit-1 || h.Rule != "turn" || h.Due == nil {
		t.Errorf("held %+v", h)
	}
	i.wantLedger(sel, api.Account{Candidates: moves, Decided: limit + 1, Held: 1, Dropped: moves - limit - 2})
	wantChurnTold(t, i, f.ID, moves-limit-1)
	wantProvenance(t, i, sel)
	wantReplayed(t, i, sel)

	if out := i.cli("", "holds", "list", "--user", "ann"); !strings.Contains(out, ending(h.ID)) || !strings.Contains(out, town(moves-1)) {
		t.Errorf("holds list says %s", out)
	}
	if out := i.cli("", "holds", "release", ending(h.ID)); !strings.Contains(out, "UPDATE "+ending(f.ID)) {
		t.Errorf("holds release says %s", out)
	}
	if now := wantOne(t, i.facts(sel), town(moves-1)); now.ID != f.ID || now.Revision != limit+2 {
		t.Errorf("released: %+v", now)
	}
	wantHeld(t, i, sel)
	i.wantLedger(sel, api.Account{Candidates: moves, Decided: limit + 2, Dropped: moves - limit - 2})
	wantProvenance(t, i, sel)
	wantReplayed(t, i, sel)
	refused(t, 1, "not_found", "", i.remote("holds", "release", h.ID)...)

	// The rule that reads the session again does not make history of the loop.
	if _, err := i.api.EndSession(t.Context(), api.ScopeOf(who), ""); err != nil {
		t.Fatal(err)
	}
	i.settledBy("sleep", sel, moves)
	all, err := i.api.Facts(t.Context(), sel, client.ListFacts{Limit: 1000, Closed: true})
	if err != nil || len(all.Facts) != 1 || all.Facts[0].Revision != limit+2 {
		t.Errorf("read again: %d facts, %v", len(all.Facts), err)
	}
	wantHeld(t, i, sel)
	wantReplayed(t, i, sel)
}

// TestFaultRunawayUpdatesOutliveADeath: held candidates are counted, logged once,
// and still held after a kill.
func TestFaultRunawayUpdatesOutliveADeath(t *testing.T) {
	t.Parallel()
	const moves, limit = 24, 20
	i := start(t, t.TempDir())
	who := person("ann")
	for n := range moves {
		i.say(who, turn("I moved to "+town(n)+"."))
	}
	i.settled(of(who), moves)
	h := wantHeld(t, i.instance, of(who), town(moves-1))
	i.wantMetrics(fmt.Sprintf("palimpsest_churn_held_total %d", moves-limit-1), `palimpsest_store_rows\{kind="holds"\} 1`)
	if warnings := strings.Count(i.stderr.String(), "a fact changes too often"); warnings != 1 {
		t.Errorf("%d warnings, want one:\n%s", warnings, i.stderr)
	}
	i.restart()
	if again := wantHeld(t, i.instance, of(who), town(moves-1)); again.ID != h.ID || !again.Due.Equal(*h.Due) {
		t.Errorf("after a restart: %+v", again)
	}
}

// TestFaultRunawayUpdatesHealThemselves waits for the release of the held
// candidates, over a kill.
func TestFaultRunawayUpdatesHealThemselves(t *testing.T) {
	t.Parallel()
	const moves = 12
	dir := t.TempDir()
	settings := filepath.Join(dir, "palimpsest.yaml")
	text := "decider: {churn: {limit: 3, window: 4s}}\nscheduler: {sweep: 100ms}\n"
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	i := start(t, filepath.Join(dir, "data"), "--config", settings)
	who := person("ann")
	sel := of(who)
	for n := range moves {
		i.say(who, turn("I moved to "+town(n)+"."))
	}
	i.settled(sel, moves)
	i.restart()
	eventually(t, "what was said last is known", func() error {
		facts, held := i.facts(sel), i.held(sel)
		if len(facts) != 1 || !strings.Contains(facts[0].Text, town(moves-1)) || len(held) > 0 {
			return fmt.Errorf("known %q, held %+v", texts(facts), held)
		}
		return nil
	})
	released := false
	for _, e := range i.effects(sel) {
		released = released || e.Command != nil && e.Command.Op == "release_due" && len(e.Released) == 1 && len(e.Facts) == 1
	}
	if !released {
		t.Error("nothing was held and released")
	}
	if a := i.account("turn", sel); a.Candidates != moves || a.Held != 0 {
		t.Errorf("account %+v", a)
	}
	wantReplayed(t, i.instance, sel)
}

func (i *instance) held(sel scope.Selector) []api.Hold {
	i.t.Helper()
	page, err := i.project(sel).Holds(i.t.Context(), sel, 100, "")
	if err != nil {
		i.t.Fatal(err)
	}
	return page.Holds
}

// wantHeld checks the objects of the held candidates, and returns the first.
func wantHeld(t *testing.T, i *instance, sel scope.Selector, objects ...string) (first api.Hold) {
	t.Helper()
	held := i.held(sel)
	if len(held) != len(objects) {
		t.Fatalf("held %+v, want %q", held, objects)
	}
	for n, h := range held {
		if h.Object != objects[n] || h.Why != "churn" {
			t.Fatalf("held %+v, want %q", held, objects)
		}
		first = held[0]
	}
	return first
}

// wantLedger checks what became of the candidates of rule turn.
func (i *instance) wantLedger(sel scope.Selector, want api.Account) {
	i.t.Helper()
	a := i.account("turn", sel)
	got := api.Account{Candidates: a.Candidates, Decided: a.Decided, Held: a.Held, Dropped: a.Dropped}
	if got != want {
		i.t.Errorf("ledger %+v, want %+v", got, want)
	}
}

// wantChurnTold checks that readers are told of n candidates that were kept from
// changing a fact.
func wantChurnTold(t *testing.T, i *instance, id string, n int) {
	t.Helper()
	h, err := i.api.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	churn := 0
	for _, c := range h.Changes {
		if c.Reason == "churn" {
			churn++
			if c.Event != "NONE" {
				t.Errorf("churn shows as %s", c.Event)
			}
		}
	}
	// One more for each batch that replaced an earlier held one.
	if churn < n {
		t.Errorf("%d changes of reason churn, want %d", churn, n)
	}
	if e, err := i.api.Explain(t.Context(), id); err != nil || e.Fact.ID != id || len(e.Decisions) == 0 || len(e.Versions) == 0 {
		t.Errorf("explain: %+v, %v", e, err)
	}
}

// wantMetrics wants lines of what the process counts.
func (i *process) wantMetrics(lines ...string) {
	i.t.Helper()
	res, err := http.Get(i.HTTP + "/metrics")
	if err != nil {
		i.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	for _, line := range lines {
		if !regexp.MustCompile("(?m)^" + line + "$").Match(text) {
			i.t.Errorf("no %s among the metrics", line)
		}
	}
}
