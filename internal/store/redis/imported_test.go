package redis

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// TestImportedSessionsCostAMessageNothing: a message of a user with 5,000 imported
// sessions takes the commands and reads the rows of one with 5.
func TestImportedSessionsCostAMessageNothing(t *testing.T) {
	t.Parallel()
	cfg := countedConfig(t)
	s := openNew(t, cfg)
	var few, many messageCosts
	for name, n := range map[string]int{"few": 5, "many": 5_000} {
		imported := make([]memory.Episode, n)
		for i := range imported {
			full := ana
			full.User, full.Session = name, fmt.Sprintf("s%d", i)
			imported[i] = memory.Episode{ID: "1", Source: "app", Scope: full, Role: events.RoleUser, Content: "hello",
				Mode: events.ModeBackfill, Timestamp: said0, ArrivedAt: said0}
		}
		for len(imported) > 0 {
			page := imported[:min(len(imported), 50)]
			if _, err := s.PutEpisodes(t.Context(), page); err != nil {
				t.Fatal(err)
			}
			imported = imported[len(page):]
		}
		if cost := messageCost(t, s, name); name == "few" {
			few = cost
		} else {
			many = cost
		}
	}
	if diff := cmp.Diff(few, many, cmp.AllowUnexported(messageCosts{})); diff != "" {
		t.Errorf("cost of a message (-5 sessions +5,000 sessions):\n%s", diff)
	}
}

// messageCosts is what one message costs: commands by name, and rows that are read of open
// sessions and of the wait queue.
type messageCosts struct {
	commands      map[string]int
	open, entries int
}

// messageCost has a user say something in a new session, and looks at the scope as the
// scheduler does.
func messageCost(t *testing.T, s *Store, name string) messageCosts {
	t.Helper()
	before := len(listed(t, s, ""))
	sent := &counts{sent: map[string]int{}}
	addHook(s, sent)
	full := ana
	full.User, full.Session = name, "now"
	put, err := s.PutEpisodes(t.Context(), []memory.Episode{{ID: "1", Source: "app", Scope: full, Role: events.RoleUser,
		Content: "hello again", Timestamp: said0, ArrivedAt: said0}})
	if err != nil || len(put) != 1 {
		t.Fatal(put, err)
	}
	look, err := s.Look(t.Context(), full.Fact())
	if err != nil || look.Open != 1 {
		t.Fatalf("%d open sessions, %v", look.Open, err)
	}
	open, err := s.OpenSessions(t.Context(), full.Fact())
	if err != nil {
		t.Fatal(err)
	}
	costs := messageCosts{commands: sent.now(), open: len(open)}
	costs.entries = len(listed(t, s, "")) - before
	return costs
}
