package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// TestP10QuarantineKilledAtEachStep kills the program at each step of a quarantine, whose
// caller gets no answer. Sent again, the request withdraws what the first one left, and its
// correlation id brings all of it back.
func TestP10QuarantineKilledAtEachStep(t *testing.T) {
	t.Parallel()
	file, err := armed()
	if err != nil {
		t.Fatal(err)
	}
	i := mortal(t, file)
	i.begin()
	var deaths []death
	for _, step := range []string{failpoint.Appended, failpoint.Applied} {
		for pass := 1; pass <= 2; pass++ { // of the mark, and of the undo
			deaths = append(deaths, death{failpoint.Point{Stage: failpoint.Consolidator, Step: step}, pass})
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
		var request string
		eventually(t, "the quarantine, sent again", func() error {
			again, err := i.api.Quarantine(t.Context(), choose)
			told := (*api.Problem)(nil)
			switch {
			case errors.As(err, &told) && told.Code == api.CodeFactConflict: // what was appended is applied by now
				_, request, _ = strings.Cut(told.Detail, "releases them: ")
				return nil
			case err == nil:
				request = again.CorrelationID
			}
			return err
		})
		if held := i.held(all); len(held) != 1 || held[0].Why != "quarantine" {
			t.Errorf("%s: held are %+v, want the mark", d, held)
		}
		if facts := i.facts(all); slices.ContainsFunc(facts, func(f api.Fact) bool { return f.ValidUntil == nil }) {
			t.Errorf("%s: in quarantine are %+v", d, facts)
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
}
