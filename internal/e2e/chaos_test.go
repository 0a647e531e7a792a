package e2e

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/chaos"
	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/internal/topology"
)

// chaosLimit bounds a run of chaos: work that a killed process held waits half a
// minute for the next one.
const chaosLimit = 8 * time.Minute

// tried is what `palimpsest chaos --json` says.
type tried struct {
	chaos.Size
	Run     chaos.Figures
	Verdict chaos.Verdict
}

// tryChaos runs the command and wants its verdict, good or bad.
func tryChaos(t testing.TB, args ...string) (out tried, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), chaosLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"--json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its children
	cmd.WaitDelay = patience
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if json.Unmarshal(stdout.Bytes(), &out) != nil {
		t.Fatalf("%v: %v: %s%s", args, err, stdout.String(), stderr.String())
	}
	return out, cmd.ProcessState.ExitCode()
}

// theft takes something away behind the back of a stopped Palimpsest.
type theft struct {
	name  string
	steal func(t *testing.T, data string)
	// noticed is the figure of the verdict that must say so.
	noticed func(v chaos.Verdict) int
}

func lost(v chaos.Verdict) int       { return v.Lost }
func waiting(v chaos.Verdict) int    { return v.Pending } // EPISODES has it
func duplicated(v chaos.Verdict) int { return v.Duplicated }
func gaps(v chaos.Verdict) int       { return v.RevisionGaps }
func auditOff(v chaos.Verdict) int   { return v.AuditOff }
func outOfOrder(v chaos.Verdict) int { return v.OutOfOrder }
func wrong(v chaos.Verdict) int      { return v.Wrong }

var thefts = []theft{
	{"an episode of the store", inFile("memory.db", `DELETE FROM episodes WHERE row = (SELECT max(row) / 2 FROM episodes)`), waiting},
	{"a message of EPISODES", fromStream(topology.StreamEpisodes, acknowledged), lost},
	{"an effect of AUDIT", fromStream(topology.StreamAudit, half), gaps},
	{"the newest effect of AUDIT", fromStream(topology.StreamAudit, newest), gaps},
	{"a row of the audit log", inFile("audit.db", `DELETE FROM record_rows WHERE sequence = (SELECT max(sequence) FROM record_rows) AND idx = 0`), auditOff},
	{"an effect of the audit log", inFile("audit.db", `DELETE FROM effects WHERE sequence = (SELECT max(sequence) / 2 FROM effects)`), auditOff},
	{"a fact", inFile("memory.db", `DELETE FROM facts WHERE row = (SELECT max(row) FROM facts WHERE predicate = 'likes' AND valid_until IS NULL)`), lost},
	{"the uniqueness of a fact", inFile("memory.db", `
	  CREATE TEMP TABLE twin AS SELECT * FROM facts WHERE predicate = 'lives_in' AND valid_until IS NULL LIMIT 1;
	  UPDATE twin SET row = 1000000, id = 'twin';
	  INSERT INTO facts SELECT * FROM twin`), duplicated},
	{"the uniqueness of an episode", inFile("memory.db", `
	  UPDATE scopes SET last_ordinal = last_ordinal + 1 WHERE id = 1;
	  CREATE TEMP TABLE twin AS SELECT * FROM episodes WHERE scope_id = 1 AND ordinal = 5;
	  UPDATE twin SET row = 1000000, source = 'twin', ordinal = (SELECT last_ordinal FROM scopes WHERE id = 1);
	  INSERT INTO episodes SELECT * FROM twin`), duplicated},
	{"the value of a fact", inFile("memory.db", `UPDATE facts SET body = replace(body, '"object":"', '"object":"x')
	  WHERE row = (SELECT max(row) FROM facts WHERE predicate = 'lives_in' AND valid_until IS NULL)`), outOfOrder},
	{"the end of a fact", inFile("memory.db", `UPDATE facts SET valid_until = NULL, body = json_remove(body, '$.valid_until')
	  WHERE row = (SELECT max(row) FROM facts WHERE predicate = 'likes' AND valid_until IS NOT NULL)`), wrong},
	{"the order of two episodes", inFile("memory.db", `
	  UPDATE episodes SET ordinal = -3 WHERE scope_id = 1 AND ordinal = 3;
	  UPDATE episodes SET ordinal = 3 WHERE scope_id = 1 AND ordinal = 9;
	  UPDATE episodes SET ordinal = 9 WHERE scope_id = 1 AND ordinal = -3`), outOfOrder},
	{"the home of an episode", inFile("memory.db", `
	  INSERT INTO scopes (id, project, key, user, agent, session, last_ordinal)
	    SELECT 1000000, project, replace(key, user, user || 'x'), user || 'x', agent, session, 1 FROM scopes WHERE id = 1;
	  CREATE TEMP TABLE twin AS SELECT * FROM episodes WHERE scope_id = 1 AND ordinal = 5;
	  UPDATE twin SET row = 1000000, scope_id = 1000000, ordinal = 1;
	  INSERT INTO episodes SELECT * FROM twin`), wrong},
	{"the consolidation of an episode", inFile("memory.db", `UPDATE rule_states SET watermark = watermark - 1 WHERE scope_id = 1 AND rule = 'turn'`), waiting},
}

// inFile changes rows of one of the SQLite files.
func inFile(name, statements string) func(*testing.T, string) {
	return func(t *testing.T, data string) {
		db, err := sql.Open("sqlite", filepath.Join(data, name))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		done, err := db.ExecContext(t.Context(), statements)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			t.Fatalf("%d rows changed (%v)", n, err)
		}
	}
}

func half(_ *testing.T, _ string, last uint64) uint64   { return last / 2 }
func newest(_ *testing.T, _ string, last uint64) uint64 { return last }

// acknowledged is where a message stands that its publisher was acknowledged.
func acknowledged(t *testing.T, data string, _ uint64) uint64 {
	record, _, err := chaos.ReadRecord(filepath.Dir(data))
	if err != nil {
		t.Fatal(err)
	}
	return record.Acks[0][len(record.Acks[0])/2]
}

// fromStream removes a message of a stream.
func fromStream(name string, which func(t *testing.T, data string, last uint64) uint64) func(*testing.T, string) {
	return func(t *testing.T, data string) {
		b, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: filepath.Join(data, "nats"), Private: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := b.Shutdown(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}()
		var stream jetstream.Stream
		if stream, err = b.JetStream().Stream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if err := stream.DeleteMsg(t.Context(), which(t, data, stream.CachedInfo().State.LastSeq)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChaosInterrupted: an interrupted run leaves no process and no file.
func TestChaosInterrupted(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "chaos", "--episodes", "5000", "--users", "50", "--kills", "1")
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	under := bufio.NewScanner(stderr)
	for under.Scan() && !strings.HasPrefix(under.Text(), "acknowledged") {
		continue
	}
	urls, err := filepath.Glob(filepath.Join(tmp, "*", "data", "nats", broker.URLFile))
	if err != nil || len(urls) != 1 {
		t.Fatalf("it runs nothing: %v, %v", urls, err)
	}
	url, err := os.ReadFile(urls[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	said := ""
	for under.Scan() {
		said = under.Text()
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said, "interrupted") {
		t.Errorf("it ended with %v and %q", err, said)
	}
	if conn, err := nats.Connect(strings.TrimSpace(string(url))); err == nil {
		conn.Close()
		t.Error("its Palimpsest still runs")
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("it left %v (%v)", left, err)
	}
}

// TestChaos runs a small workload under kills, which keeps every promise. It then
// removes some of the stored data, and each time the verdict reports the loss.
func TestChaos(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	out, code := tryChaos(t, "chaos", "--episodes", "300", "--users", "10", "--kills", "2", "--seed", "5", "--data", dir)
	if v := out.Verdict; code != 0 || !v.OK || v.Checked.Episodes != 300 || v.Checked.Facts == 0 || v.Checked.AuditRows == 0 {
		t.Fatalf("exit %d: %+v", code, v)
	}
	want, err := chaos.Draw(out.Size)
	if err != nil {
		t.Fatal(err)
	}
	var killed []chaos.Kill
	for _, k := range out.Run.Kills {
		killed = append(killed, k.Kill)
	}
	slices.SortFunc(killed, chaos.Kill.Compare) // which counter is first is the machine's
	if diff := cmp.Diff(want.Kills, killed); diff != "" {
		t.Errorf("kills (-of the seed +made):\n%s", diff)
	}
	if again, code := tryChaos(t, "chaos", "--judge", dir); code != 0 || !again.Verdict.OK {
		t.Fatalf("judged again: exit %d: %+v", code, again.Verdict)
	}
	for _, th := range thefts {
		t.Run(th.name, func(t *testing.T) {
			t.Parallel()
			robbed := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(robbed, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			th.steal(t, chaos.Data(robbed))
			out, code := tryChaos(t, "chaos", "--judge", robbed)
			if code == 0 || out.Verdict.OK || th.noticed(out.Verdict) == 0 {
				t.Errorf("exit %d: %+v", code, out.Verdict)
			}
		})
	}
}

// TestP1TwelveProcessesAreKilled runs two replicas of each service under load and
// kills one of the twelve each second. It compares the stored data with the
// acknowledgements, and the facts with those of one undisturbed process.
func TestP1TwelveProcessesAreKilled(t *testing.T) {
	t.Parallel()
	redis, namespace := redisNamespace(t)
	on := engines{redis, namespace, clickhouseserver.DSN(t)}
	config := filepath.Join(t.TempDir(), "palimpsest.yaml")
	on.configure(t, config, startNATS(t).url(), soon...)
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{
		"--config", config, "chaos", "--replicas", "2", "--episodes", "360", "--users", "12", "--every", "1s", "--for", "7s", "--seed", "5501",
		"--compare", "--data", dir,
	}
	out, code := tryChaos(t, args...)
	v := out.Verdict
	if code != 0 || !v.OK || v.Checked.Episodes != 360 || v.Checked.Facts == 0 || v.Checked.AuditRows == 0 || v.Shapes == nil {
		t.Fatalf("exit %d: %+v", code, v)
	}
	killed := map[string]bool{}
	for _, k := range out.Run.Kills {
		killed[k.Name] = true
	}
	if len(out.Run.Kills) != 7 || len(killed) != len(services) {
		t.Errorf("killed: %+v", out.Run.Kills)
	}
	if again, code := tryChaos(t, "--config", config, "chaos", "--judge", dir); code != 0 || !again.Verdict.OK {
		t.Errorf("judged again: exit %d: %+v", code, again.Verdict)
	}
	refused(t, 1, "needs an engine of its own", "", args[:len(args)-2]...)
}
