package clickhouse_test

import (
	"errors"
	"strings"
	"testing"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/audit/clickhouse"
	"palimpsest/internal/memory"
	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestErasure(t *testing.T) {
	t.Parallel()
	clickhouseserver.Each(t, func(t *testing.T, dsn func(testing.TB) string) {
		audittest.RunErasure(t, func(t *testing.T) audit.Log {
			t.Helper()
			log := open(t, dsn(t))
			t.Cleanup(func() { _ = log.Close() })
			return log
		})
	})
}

// TestErasureTellsOfAMutationThatFails: an erasure behind a mutation that can never be
// applied ends with the server's reason, and goes on once that one is killed.
func TestErasureTellsOfAMutationThatFails(t *testing.T) {
	t.Parallel()
	server := clickhouseserver.Own(t)
	log := open(t, server.DSN("native", "palimpsest"))
	defer log.Close()
	if err := log.Write(t.Context(), audittest.LogStory(scope.Scope{Project: "p", User: audittest.Erased}, 4, 1)); err != nil {
		t.Fatal(err)
	}
	conn, err := clickhouseserver.Connect(server.DSN("native", "palimpsest"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Exec(t.Context(), "ALTER TABLE effects DELETE WHERE throwIf(length(project) > 0, 'no such luck') SETTINGS mutations_sync = 0"); err != nil {
		t.Fatal(err)
	}
	whom := memory.Whom{Project: "p", Is: func(user string) bool { return user == audittest.Erased }}
	if _, err := log.Erase(t.Context(), whom); !errors.Is(err, clickhouse.ErrMutation) || !strings.Contains(err.Error(), "no such luck") {
		t.Fatalf("behind the failing mutation: %v", err)
	}
	if err := conn.Exec(t.Context(), "KILL MUTATION WHERE database = 'palimpsest' AND position(command, 'no such luck') > 0 SYNC"); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Erase(t.Context(), whom); err != nil {
		t.Fatalf("once it is killed: %v", err)
	}
	if left, err := log.Scan(t.Context(), whom); left > 0 || err != nil {
		t.Errorf("%d scopes are left: %v", left, err)
	}
}

// TestP10NoByteIsLeftInTheServer: the name of an erased user is in no file of the
// server, decompressed blocks included.
func TestP10NoByteIsLeftInTheServer(t *testing.T) {
	t.Parallel()
	server := clickhouseserver.Own(t)
	log := open(t, server.DSN("native", "palimpsest"))
	of := audittest.LogStory(scope.Scope{Project: "p", User: audittest.Erased}, 40, 1)
	for i := range of {
		of[i].Data.Facts[0].Text = strings.Repeat(audittest.Erased+" ", 100) // its block is compressed
	}
	for _, effects := range [][]events.Event[events.EffectCommitted]{of, audittest.LogStory(scope.Scope{Project: "p", User: "ana"}, 40, 100)} {
		if err := log.Write(t.Context(), effects); err != nil {
			t.Fatal(err)
		}
	}
	if before := server.Holding(t, audittest.Erased); len(before) == 0 {
		t.Fatal("the marker is not there to begin with")
	}
	whom := memory.Whom{Project: "p", Is: func(user string) bool { return user == audittest.Erased }}
	if done, err := log.Erase(t.Context(), whom); err != nil || done.Effects != uint64(len(of)) {
		t.Errorf("erased %+v: %v", done, err)
	}
	if err := log.Write(t.Context(), audittest.LogStory(scope.Scope{Project: "p", User: "late"}, 3, 200)); err != nil {
		t.Fatal(err)
	}
	wantDays(t, server, "palimpsest")
	if left := server.Holding(t, audittest.Erased); len(left) > 0 {
		t.Errorf("the marker is in %v", left)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantDays compares the counts of each day with the records.
func wantDays(t *testing.T, server *clickhouseserver.Server, database string) {
	t.Helper()
	conn, err := clickhouseserver.Connect(server.DSN("native", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var counted, there uint64
	err = conn.QueryRow(t.Context(), "SELECT uniqExactMerge(deltas), (SELECT uniqExact(scope, revision, idx) FROM audit) FROM daily_deltas").Scan(&counted, &there)
	if err != nil || counted != there || there == 0 {
		t.Errorf("%d deltas are counted by day, %d are there: %v", counted, there, err)
	}
}

// TestTablesThatAnErasureClosedAreOpened: an erasure that died while it closed a table
// is repeated.
func TestTablesThatAnErasureClosedAreOpened(t *testing.T) {
	t.Parallel()
	dsn := clickhouseserver.DSN(t)
	log := open(t, dsn)
	if err := log.Write(t.Context(), audittest.LogStory(scope.Scope{Project: "p", User: "ana"}, 3, 1)); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := clickhouseserver.Connect(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{
		"CREATE TABLE erasing (project String, scope String) ENGINE = MergeTree ORDER BY (project, scope)",
		"INSERT INTO erasing SELECT project, scope FROM effects", "DETACH TABLE audit SYNC",
	} {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	log = open(t, dsn)
	defer log.Close()
	whom := memory.Whom{Project: "p", Is: func(user string) bool { return user == "ana" }}
	if done, err := log.Erase(t.Context(), whom); err != nil || done.Effects != 3 {
		t.Errorf("erased %+v: %v", done, err)
	}
}
