package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/events"
)

// armed builds the program with its failpoints, once, and returns its path.
// Without the race detector it starts in a third of the time, and it starts
// often; other tests look for races.
var armed = sync.OnceValues(func() (string, error) {
	file := filepath.Join(filepath.Dir(program), "armed")
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-tags", "failpoints", "-o", file, "palimpsest/cmd/palimpsest").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return file, nil
})

// death is one pass of one point.
type death struct {
	failpoint.Point
	pass int
}

func (d death) String() string { return fmt.Sprintf("%s:%d", d.Point, d.pass) }

// passes are those of a point at which the process dies: the first, and where
// one story brings more, a later one.
func passes(p failpoint.Point) []int {
	switch p.Stage {
	case "consolidator-projector", "consolidator-auditlog":
		if p.Step == failpoint.Acked {
			return []int{1} // one cursor may cover a whole story
		}
	case "scheduler-sweep":
		return []int{1} // the sweep is at start; the next comes a minute later
	case "decider-candidates-rules", "consolidator-deltas-rules", failpoint.Consolidator:
		return []int{1, 4}
	}
	return []int{1, 2}
}

// deaths lists every pass of every point of a running process. Those of one stage
// do not follow each other: a message that is alone in hand at three deaths in a
// row is rightly taken for their cause.
func deaths() []death {
	var stages [][]death
	for _, p := range failpoint.Points() {
		if p.Stage == failpoint.Erasure {
			continue // no step of the pipeline
		}
		if n := len(stages); n == 0 || stages[n-1][0].Stage != p.Stage {
			stages = append(stages, nil)
		}
		for _, n := range passes(p) {
			stages[len(stages)-1] = append(stages[len(stages)-1], death{p, n})
		}
	}
	var out []death
	for turn := range mostDeaths(stages) {
		for _, s := range stages {
			if turn < len(s) {
				out = append(out, s[turn])
			}
		}
	}
	return out
}

func mostDeaths(stages [][]death) int {
	return len(slices.MaxFunc(stages, func(a, b []death) int { return len(a) - len(b) }))
}

// sweeping is the death of a sweep that found something, and losing loses it a
// wake-up to find: one for a scope that is due, unless it was an older one that
// came again.
var (
	sweeping = death{failpoint.Point{Stage: "scheduler-sweep", Step: failpoint.Published}, 1}
	losing   = death{failpoint.Point{Stage: "scheduler-stored", Step: failpoint.Fetched}, 1}
)

// sweepPatience is much longer than a start and the sweep that belongs to it.
const sweepPatience = 10 * time.Second

// dieSweeping loses wake-ups until a sweep finds one; more returns the stories
// with a new one.
func (i *process) dieSweeping(more func() []*story) {
	i.t.Helper()
	for range 10 {
		i.dieAt(losing, more())
		if i.diesAt(sweeping, more(), sweepPatience) {
			return
		}
	}
	i.t.Errorf("%s is not reached", sweeping)
}

// TestP2KilledAtEachStep kills the program at every step of the pipeline in turn,
// each time during a story of another user. In the end every story has the result
// of an undisturbed run: the messages in hand at those deaths are not buried.
func TestP2KilledAtEachStep(t *testing.T) {
	t.Parallel()
	file, err := armed()
	if err != nil {
		t.Fatal(err)
	}
	calm, i := mortal(t, file), mortal(t, file)
	calm.begin()
	var lived, undisturbed []*story
	more := func() []*story {
		s := newStory(fmt.Sprintf("story %d", len(lived)))
		lived, undisturbed = append(lived, s), append(undisturbed, newStory(s.who.User))
		return lived
	}
	for _, d := range deaths() {
		if d == sweeping {
			i.dieSweeping(more)
			continue
		}
		i.dieAt(d, more())
	}
	i.env = nil
	i.begin()
	live(t, i, lived)
	live(t, calm, undisturbed)
	for _, s := range lived {
		s.lived(i)
		s.lived(calm)
		s.wantSame(t, calm, i)
	}
	for _, letter := range i.buried(0) {
		if letter.Code == events.CodePoison {
			t.Errorf("taken for the cause of the deaths: %s %d: %s", letter.Stream, letter.Sequence, letter.Reason)
		}
	}
	wantReplayed(t, i.instance, everything("default"))
	wantAuditLog(t, i)
}

// mortal is a process of that binary before its launch. Its batches do not wait for
// more messages, so that a death comes soon, and it refuses no publisher because of
// the backlog of its deaths.
func mortal(t *testing.T, file string) *process {
	t.Helper()
	settings := filepath.Join(t.TempDir(), "palimpsest.yaml")
	write(t, settings, []byte("consolidator: {sink_wait: 100ms}\npipeline: {backlog_age: 1h}\n"))
	i := prepare(t, t.TempDir(), "--config", settings)
	i.file = file
	return i
}

// dieAt runs the program until it dies at a point, while the stories go on.
func (i *process) dieAt(d death, stories []*story) {
	i.t.Helper()
	if !i.diesAt(d, stories, patience) {
		i.t.Errorf("%s is not reached within %v", d, patience)
	}
}

// diesAt is [process.dieAt] for a point that may not be met: the program is
// killed when the time is over.
func (i *process) diesAt(d death, stories []*story, within time.Duration) bool {
	i.t.Helper()
	i.env = []string{failpoint.Env + "=" + d.String()}
	began := time.Now()
	defer func() { i.t.Logf("%s after %v", d, time.Since(began).Round(time.Millisecond)) }()
	launched := i.launch()
	ctx, cancel := context.WithTimeout(i.t.Context(), within)
	defer cancel()
	var wait sync.WaitGroup
	for n, s := range stories {
		if launched != nil {
			break
		}
		wait.Go(func() {
			_ = s.live(ctx, i) // an unacknowledged message is published again
			for n == len(stories)-1 && ctx.Err() == nil {
				s.read(ctx, i)
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	reached := true
	select {
	case <-i.done:
	case <-ctx.Done():
		reached = false
		_ = i.cmd.Process.Kill()
		<-i.done
	}
	cancel()
	wait.Wait()
	i.conn.Close()
	status, ok := i.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if reached && (!ok || status.Signal() != syscall.SIGKILL || !strings.Contains(i.stderr.String(), "failpoint: killed at "+d.Point.String()+"\n")) {
		i.t.Errorf("%s: ended with %s (launch: %v):\n%s", d, i.cmd.ProcessState, launched, i.stderr)
	}
	i.cmd = nil
	return reached
}

// live lets all stories come to their end at once.
func live(t *testing.T, i *process, stories []*story) {
	t.Helper()
	var wait sync.WaitGroup
	errs := make([]error, len(stories))
	for n, s := range stories {
		wait.Go(func() { errs[n] = s.live(t.Context(), i) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestP1KilledWhileCatchingUp takes the memory store back to an older state and
// kills the process that brings it up to the streams, at each step in turn. The
// next one finishes what the last one began.
func TestP1KilledWhileCatchingUp(t *testing.T) {
	t.Parallel()
	file, err := armed()
	if err != nil {
		t.Fatal(err)
	}
	i := mortal(t, file)
	i.begin()
	tell := func(users ...string) {
		var stories []*story
		for _, user := range users {
			stories = append(stories, newStory(user))
		}
		live(t, i, stories)
		for _, s := range stories {
			s.lived(i)
		}
	}
	tell("ann")
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(i.files()[0])
	if err != nil {
		t.Fatal(err)
	}
	i.begin()
	tell("ben", "eve")
	want := i.export(everything("default"), true)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []death{
		{failpoint.Point{Stage: failpoint.Ingest, Step: failpoint.Handled}, 1}, {failpoint.Point{Stage: failpoint.Ingest, Step: failpoint.Acked}, 1},
		{failpoint.Point{Stage: projector, Step: failpoint.Handled}, 1}, {failpoint.Point{Stage: projector, Step: failpoint.Acked}, 1},
	} {
		i.unlink()
		write(t, i.files()[0], older)
		i.dieAt(d, nil)
	}
	i.env = nil
	i.begin()
	if diff := cmp.Diff(want, i.export(everything("default"), true)); diff != "" {
		t.Errorf("what is known (-before +after):\n%s", diff)
	}
	wantReplayed(t, i.instance, everything("default"))
	wantAuditLog(t, i)
}

// projector is the stage that applies what the memory store lacks.
const projector = "consolidator-projector"

// wantAuditLog counts the audit log: a row for each delta
// of AUDIT, and no more.
func wantAuditLog(t *testing.T, i *process) {
	t.Helper()
	deltas := 0
	for _, e := range i.effects(everything("default")) {
		deltas += len(e.Applied)
	}
	db, err := sql.Open("sqlite", filepath.Join(i.data, "audit.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	eventually(t, "a row of the audit log for each delta", func() error {
		rows := 0
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM records").Scan(&rows)
		if err == nil && rows != deltas {
			err = fmt.Errorf("%d rows, %d deltas", rows, deltas)
		}
		return err
	})
}
