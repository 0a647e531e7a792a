package e2e

import (
	"fmt"
	"testing"

	"palimpsest/internal/testengine/clickhouseserver"
)

// TestP7FaultClickHouseIsKilled keeps the audit log in a ClickHouse that is
// killed, and kills the process too: in the end it has a row for each delta.
func TestP7FaultClickHouseIsKilled(t *testing.T) {
	t.Parallel()
	server := clickhouseserver.Own(t)
	dsn := server.DSN("native", "palimpsest")
	i := prepare(t, t.TempDir())
	i.env = []string{"PALIMPSEST_AUDIT=" + dsn}
	i.begin()
	const users, turns = 4, 12
	i.tellAll(scripts(users, turns/3), 0, nil)
	server.Kill()
	i.tellAll(scripts(users, 2*turns/3), 0, nil)
	i.kill()
	i.begin()
	i.tellAll(scripts(users, turns), 0, nil)
	i.settled(everything("default"), users*turns)

	wantAuditRows(t, i.instance, dsn)
	for _, f := range i.facts(of(person("user 0"))) {
		if h, err := i.api.History(t.Context(), f.ID); err != nil || len(h.Changes) == 0 {
			t.Errorf("history of fact %s: %v", f.ID, err)
		}
	}
}

// wantAuditRows wants a row of the audit log for each delta in the audit stream.
func wantAuditRows(t testing.TB, i *instance, dsn string) {
	t.Helper()
	deltas := 0
	for _, e := range i.effects(everything("default")) {
		deltas += len(e.Applied)
	}
	conn, err := clickhouseserver.Connect(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, "a row of the audit log for each delta", func() error {
		var rows uint64
		err := conn.QueryRow(t.Context(), "SELECT count() FROM audit FINAL").Scan(&rows)
		if err == nil && rows != uint64(deltas) {
			err = fmt.Errorf("%d rows, %d deltas", rows, deltas)
		}
		return err
	})
	if deltas == 0 {
		t.Error("nothing was decided")
	}
}
