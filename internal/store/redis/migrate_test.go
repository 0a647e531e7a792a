package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/events"
)

// TestSchema1IsMigrated: the lookup and the wait queue made from rows are those that were
// kept as they were written, and an attempt that was stopped is begun again.
func TestSchema1IsMigrated(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := openNew(t, cfg)
	tell(t, s, "1", "I live in Oslo")
	tell(t, s, "2", "and in Rome")
	e := benchEffect("ana", 1)
	e.Scope = ana
	e.Entities = []events.Entity{{ID: "e1", CanonicalName: "Oslo", Aliases: []string{"Christiania"}}}
	due := said0.Add(time.Hour)
	e.Holds = []events.Hold{{ID: "h1", FactID: e.Facts[0].ID, HeldAt: said0, Due: &due}}
	e.Edges = []events.Edge{{ID: "g1", SourceID: "e1", TargetID: "e2"}}
	if err := s.Apply(t.Context(), e, 1); err != nil {
		t.Fatal(err)
	}
	changed := e.Facts[0]
	e = benchEffect("ana", 2)
	e.Scope, e.Versions = ana, []events.Fact{changed}
	changed.Revision, changed.Text, changed.Hash = 2, "something else", "other"
	until := said0.Add(time.Hour)
	changed.ValidUntil = &until
	e.Facts = append(e.Facts, changed)
	if err := s.Apply(t.Context(), e, 2); err != nil {
		t.Fatal(err)
	}
	p := s.place(ana)
	entries := func(s *Store) []string {
		reply, err := s.call(t.Context(), "ZRANGE", p.lookup(), 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		return texts(reply)
	}
	want := entries(s)
	waitQueue := append(listed(t, s, waitQueueDue), listed(t, s, waitQueueIdle)...)
	want0, err := s.Snapshot(t.Context(), ana)
	if err != nil || len(want0.Facts) != 2*benchFacts || len(want0.Versions) != 1 || len(want0.Entities) != 1 || len(want0.Edges) != 1 || len(want0.Holds) != 1 {
		t.Fatalf("%d entries, snapshot %+v, %v", len(want), want0, err)
	}

	old := []any{"SADD", p.row(kindMembers)}
	for _, entry := range want {
		if member, of := strings.CutPrefix(entry, byKind+" "); of {
			old = append(old, member)
		}
	}
	for _, command := range [][]any{old, {"DEL", p.lookup()}, {"ZADD", p.lookup(), 0, want[0]}, {"DEL", s.layout().waitQueue()}} {
		if _, err := s.call(t.Context(), command...); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.changeMeta(t.Context(), s.tenure(), func(m *meta) bool { m.Schema = 1; return true }); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, cfg)
	if diff := cmp.Diff(want, entries(again)); diff != "" {
		t.Errorf("entries (-kept +migrated):\n%s", diff)
	}
	if got := append(listed(t, again, waitQueueDue), listed(t, again, waitQueueIdle)...); len(got) != 2 || cmp.Diff(waitQueue, got) != "" {
		t.Errorf("wait queue %q, want %q", got, waitQueue)
	}
	if got := pendingScopes(t, again, "turn"); len(got) != 1 {
		t.Errorf("pending: %v, want the scope", got)
	}
	got, err := again.Snapshot(t.Context(), ana)
	if diff := cmp.Diff(want0, got); err != nil || diff != "" {
		t.Errorf("snapshot: %v\n%s", err, diff)
	}
	if m, _, err := again.readMeta(t.Context(), again.layout()); err != nil || m.Schema != schemaVersion {
		t.Errorf("meta %+v, %v", m, err)
	}
}
