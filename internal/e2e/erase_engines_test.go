package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/internal/failpoint"
	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/internal/testengine/redisserver"
	"palimpsest/pkg/scope"
)

// TestP10ErasedFromRedisAndClickHouse: an installation that began with files and moved to
// Redis and ClickHouse erases a user from all of them. The tombstone stays in force.
func TestP10ErasedFromRedisAndClickHouse(t *testing.T) {
	t.Parallel()
	redis, house := redisserver.Launch(t, "--rdbcompression", "no"), clickhouseserver.Own(t)
	i := prepare(t, t.TempDir())
	i.begin()
	i.lives()
	who := marked("")
	first := i.mark(who, 3)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "palimpsest.yaml")
	write(t, config, fmt.Appendf(nil, "memory: %s\naudit: %s\n", redis.URL(), house.DSN("native", "palimpsest")))
	rebuild(t, i.data, 0, "--config", config)
	i.args = []string{"--config", config}
	i.begin()
	i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), first)
	eventually(t, "the marker in ClickHouse", func() error {
		if len(house.Holding(t, marker)) == 0 {
			return fmt.Errorf("it is in no file")
		}
		return nil
	})
	if len(redis.Holding(marker)) == 0 || len(traces(t, i.data)) == 0 {
		t.Fatal("the marker is not there to begin with")
	}
	r, _ := erase(t, "--server", i.HTTP, "--user", who.User, "--yes")
	// The file of before has them too.
	if n := removed(r, "episodes"); n != uint64(2*first) {
		t.Errorf("the receipt counts %d episodes, want %d in Redis and as many in the file of before", n, first)
	}
	others := i.remains()
	i.kill()
	wantNoTrace(t, i.data)
	if left := append(redis.Holding(marker), house.Holding(t, marker)...); len(left) > 0 {
		t.Errorf("the marker is in %v", left)
	}
	if out := rebuild(t, i.data, 0, "--config", config); out.Live != out.Rebuilt {
		t.Errorf("a rebuild makes %s of %s", out.Rebuilt, out.Live)
	}
	i.begin()
	if got := i.remains(); got != others {
		t.Errorf("behind a rebuild the others are\n%s\nand were\n%s", got, others)
	}
	i.say(who, "I live in Turin.")
	i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), 1)
	if again, _ := erase(t, "--server", i.HTTP, "--user", who.User, "--yes"); again.Incarnation != 2 {
		t.Errorf("the second erasure has incarnation %d, want 2", again.Incarnation)
	}
}

// TestP10KilledWhileRedisAndClickHouseForget kills the program between the places of an
// erasure. The next start finishes it before it serves.
func TestP10KilledWhileRedisAndClickHouseForget(t *testing.T) {
	t.Parallel()
	file, err := armed()
	if err != nil {
		t.Fatal(err)
	}
	redis, house := redisserver.Launch(t, "--rdbcompression", "no"), clickhouseserver.Own(t)
	config := filepath.Join(t.TempDir(), "palimpsest.yaml")
	write(t, config, fmt.Appendf(nil, "memory: %s\naudit: %s\n", redis.URL(), house.DSN("native", "palimpsest")))
	i := prepare(t, t.TempDir(), "--config", config)
	i.file = file
	i.begin()
	i.lives()
	others := i.remains()
	i.kill()
	for n, step := range []string{failpoint.Streams, failpoint.Memory, failpoint.Log, failpoint.Scanned} {
		p := failpoint.Point{Stage: failpoint.Erasure, Step: step}
		id := i.dieErasing(p, marked(fmt.Sprint(n)))
		i.wantErased(p, id, "episodes", others)
		if left := append(redis.Holding(marker), house.Holding(t, marker)...); len(left) > 0 {
			t.Errorf("%s: the marker is in %v", p, left)
		}
	}
}

// TestP10ErasureWaitsForAMutation: ClickHouse cannot apply a mutation, so that an erasure
// waits. Readiness says why, and the erasure goes on once the mutation is killed.
func TestP10ErasureWaitsForAMutation(t *testing.T) {
	t.Parallel()
	house := clickhouseserver.Own(t)
	config := filepath.Join(t.TempDir(), "palimpsest.yaml")
	write(t, config, fmt.Appendf(nil, "audit: %s\n", house.DSN("native", "palimpsest")))
	i := prepare(t, t.TempDir(), "--config", config)
	i.begin()
	who := marked("")
	i.say(who, turn("I live in "+marker+"town."))
	i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), 1)
	conn, err := clickhouseserver.Connect(house.DSN("native", "palimpsest"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, "the effect in ClickHouse", func() error {
		var rows uint64
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM effects").Scan(&rows); err != nil || rows == 0 {
			return fmt.Errorf("%d rows: %w", rows, err)
		}
		return nil
	})
	if err := conn.Exec(t.Context(), "ALTER TABLE effects DELETE WHERE throwIf(length(project) > 0, 'no such luck') SETTINGS mutations_sync = 0"); err != nil {
		t.Fatal(err)
	}
	id, err := i.api.Erase(t.Context(), who.User)
	if err != nil {
		t.Fatal(err)
	}
	i.waitsFor("no such luck")
	if err := conn.Exec(t.Context(), "KILL MUTATION WHERE database = 'palimpsest' AND position(command, 'no such luck') > 0 SYNC"); err != nil {
		t.Fatal(err)
	}
	i.receipt(id)
	i.kill()
	wantNoTrace(t, i.data)
	if left := house.Holding(t, marker); len(left) > 0 {
		t.Errorf("the marker is in %v", left)
	}
}

// waitsFor waits until readiness tells why an erasure waits.
func (i *process) waitsFor(reason string) {
	i.t.Helper()
	eventually(i.t, "the reason in readiness", func() error {
		res, err := http.Get(i.HTTP + "/readyz")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), reason) {
			return fmt.Errorf("%s: %s, %w", res.Status, body, err)
		}
		return nil
	})
}

// receipt waits until an erasure is done.
func (i *process) receipt(id string) {
	i.t.Helper()
	eventually(i.t, "the receipt", func() error {
		e, err := i.api.Erasure(i.t.Context(), id)
		if err == nil && e.Receipt == nil {
			err = fmt.Errorf("it is %s", e.Status)
		}
		return err
	})
}
