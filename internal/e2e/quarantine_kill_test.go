package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// TestP10QuarantineKilledAtEachStep kills the program at each step of a quarantine, whose
// caller gets no answer. The next start withdraws what was left, and the correlation id of
// the request brings all of it back. The same
// plan, made again, leaves a fact alone that a caller restored meanwhile.
func TestP10QuarantineKilledAtEachStep(t *testing.T) {
	t.Parallel()
	file, err := armed()
	if err != nil {
		t.Fatal(err)
	}
	i := mortal(t, file)
	i.begin()
	var deaths []death
	for _, at := range []failpoint.Point{
		{Stage: "decider-commands", Step: failpoint.Handled}, // the mark is on its way
		{Stage: failpoint.Consolidator, Step: failpoint.Appended},
		{Stage: failpoint.Consolidator, Step: failpoint.Applied},
	} {
		for pass := 1; pass <= 2; pass++ { // of the mark, and of the undo
			deaths = append(deaths, death{at, pass})
		}
	}
	for n, d := range deaths {
		i.env = nil
		i.restart()
		who := scope.Scope{Project: "default", User: fmt.Sprint("killed ", n), Session: fmt.Sprint("bad ", n)}
		all := scope.Under(scope.Scope{Project: who.Project, User: who.User})
		i.say(who, turn("I live in Oslo."), turn("I like turnips."))
		i.settled(all, 2)
		before := i.standing(all)
		i.env = []string{failpoint.Env + "=" + d.String()}
		i.restart()
		choose := api.Quarantine{Session: who.Session}
		if out, err := i.api.Quarantine(t.Context(), choose); err == nil {
			t.Fatalf("%s: answered %+v", d, out)
		}
		if _, said := i.ended(); !strings.Contains(said, "killed at "+d.Point.String()) {
			t.Fatalf("%s is not reached; the program said %s", d, said)
		}
		i.env = nil
		i.begin()
		eventually(t, "the end of the quarantine", func() error {
			if facts := i.facts(all); slices.ContainsFunc(facts, func(f api.Fact) bool { return f.ValidUntil == nil }) {
				return fmt.Errorf("%s: in quarantine are %+v", d, facts)
			}
			return nil
		})
		told := (*api.Problem)(nil)
		if _, err := i.api.Quarantine(t.Context(), choose); !errors.As(err, &told) || told.Code != api.CodeFactConflict {
			t.Fatalf("%s: sent again: %v", d, err)
		}
		_, request, _ := strings.Cut(told.Detail, "releases them: ")
		if held := i.held(all); len(held) != 1 || held[0].Why != "quarantine" {
			t.Errorf("%s: held are %+v, want the mark", d, held)
		}
		if _, err := i.api.Trust(t.Context(), request); err != nil {
			t.Errorf("%s: the release of %q: %v", d, request, err)
		}
		if diff := cmp.Diff(before, i.standing(all)); diff != "" {
			t.Errorf("%s: after the release: %s", d, diff)
		}
		if held := i.held(all); len(held) != 0 {
			t.Errorf("%s: after the release %+v is held", d, held)
		}
	}
	who := scope.Scope{Project: "default", User: "forgiven", Session: "bad"}
	all := scope.Under(scope.Scope{Project: who.Project, User: who.User})
	i.say(who, turn("I live in Oslo."))
	i.settled(all, 1)
	known, choose := i.facts(all), api.Quarantine{Session: who.Session}
	if _, err := i.api.Quarantine(t.Context(), choose); err != nil {
		t.Fatal(err)
	}
	if _, err := i.api.Restore(t.Context(), known[0].ID, 0); err != nil {
		t.Fatal(err)
	}
	told := (*api.Problem)(nil)
	if _, err := i.api.Quarantine(t.Context(), choose); !errors.As(err, &told) || told.Code != api.CodeFactConflict {
		t.Errorf("sent again: %v", err)
	}
	if facts := i.facts(all); len(facts) != 1 || facts[0].ValidUntil != nil {
		t.Errorf("the fact that was restored is withdrawn again: %+v", facts)
	}
}

// TestQuarantineHalfReleased kills the program after a release has freed one user of two.
// The next start marks no user again who was free.
func TestQuarantineHalfReleased(t *testing.T) {
	t.Parallel()
	file, err := armed()
	if err != nil {
		t.Fatal(err)
	}
	i := mortal(t, file)
	i.begin()
	users := []scope.Selector{}
	for _, user := range []string{"ana", "ben"} {
		who := scope.Scope{Project: "default", User: user, Session: "bad"}
		users = append(users, scope.Under(scope.Scope{Project: who.Project, User: user}))
		i.say(who, turn("I live in Oslo."))
		i.settled(users[len(users)-1], 1)
	}
	out, err := i.api.Quarantine(t.Context(), api.Quarantine{Session: "bad"})
	if err != nil {
		t.Fatal(err)
	}
	i.env = []string{failpoint.Env + "=" + death{failpoint.Point{Stage: failpoint.Consolidator, Step: failpoint.Applied}, 1}.String()}
	i.restart()
	if _, err := i.api.Trust(t.Context(), out.CorrelationID); err == nil {
		t.Fatal("answered")
	}
	if _, said := i.ended(); !strings.Contains(said, "killed at") {
		t.Fatalf("the program said %s", said)
	}
	i.env = nil
	i.begin()
	if _, err := i.api.Trust(t.Context(), out.CorrelationID); err != nil {
		t.Logf("released again: %v", err) // nothing is left where both commands were published
	}
	for _, user := range users {
		eventually(t, "the release", func() error {
			held, facts := i.held(user), i.facts(user)
			if len(held) != 0 || len(facts) != 1 || facts[0].ValidUntil != nil {
				return fmt.Errorf("held %+v, facts %+v", held, facts)
			}
			return nil
		})
	}
}

// TestP7QuarantineOfAnImpatientCaller: a caller is answered before the mark of a quarantine
// is applied. The facts are withdrawn all the same.
func TestP7QuarantineOfAnImpatientCaller(t *testing.T) {
	t.Parallel()
	settings := filepath.Join(t.TempDir(), "palimpsest.yaml")
	write(t, settings, []byte("query: {wait: 1us}\n"))
	i := prepare(t, t.TempDir(), "--config", settings)
	i.begin()
	who := scope.Scope{Project: "default", User: "hasty", Session: "bad"}
	all := scope.Under(scope.Scope{Project: who.Project, User: who.User})
	i.say(who, turn("I live in Oslo."))
	i.settled(all, 1)
	out, err := i.api.Quarantine(t.Context(), api.Quarantine{Session: who.Session})
	if err != nil || out.Status != "accepted" {
		t.Fatalf("%+v: %v", out, err)
	}
	eventually(t, "the end of the quarantine", func() error {
		if facts := i.facts(all); slices.ContainsFunc(facts, func(f api.Fact) bool { return f.ValidUntil == nil }) {
			return fmt.Errorf("in quarantine are %+v", facts)
		}
		return nil
	})
}
