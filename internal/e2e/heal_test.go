package e2e

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/topology"
)

// files are those of the memory store.
func (i *process) files() []string {
	path := filepath.Join(i.data, "memory.db")
	return []string{path, path + "-wal", path + "-shm"}
}

// unlink removes the memory store.
func (i *process) unlink() {
	i.t.Helper()
	for _, name := range i.files() {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			i.t.Fatal(err)
		}
	}
}

// TestP1TheStoreIsHealedAtStart loses the memory store, or a part of it, between
// a death of the program and its next start: all that was known is known again.
func TestP1TheStoreIsHealedAtStart(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(i *process, older []byte) (said string){
		"older": func(i *process, older []byte) string {
			i.unlink()
			write(i.t, i.files()[0], older)
			return "is behind the streams"
		},
		"deleted": func(i *process, _ []byte) string {
			i.unlink()
			return "the memory store was rebuilt"
		},
		"emptied": func(i *process, _ []byte) string {
			i.unlink()
			write(i.t, i.files()[0], nil)
			return "the memory store was rebuilt"
		},
		"log cut": func(i *process, _ []byte) string {
			log := i.files()[1]
			info, err := os.Stat(log)
			if err != nil {
				i.t.Fatal(err)
			}
			if err := os.Truncate(log, info.Size()/2); err != nil {
				i.t.Fatal(err)
			}
			return "" // it may hold what was copied already
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const users, turns = 18, 4
			i := start(t, t.TempDir())
			first, rest := scripts(users, turns/2), scripts(users, turns)
			i.tellAll(first, 0, nil)
			i.settled(everything("default"), users*turns/2)
			if err := i.stop(); err != nil {
				t.Fatal(err)
			}
			older, err := os.ReadFile(i.files()[0])
			if err != nil {
				t.Fatal(err)
			}
			i.begin()
			i.tellAll(rest, 0, nil)
			i.settled(everything("default"), users*turns)
			want := i.remains()
			i.kill()
			words := lose(i, older)
			i.begin()
			if diff := cmp.Diff(want, i.remains()); diff != "" {
				t.Errorf("after the loss (-before +after):\n%s", diff)
			}
			if _, err := i.api.Ready(t.Context()); err != nil {
				t.Error(err)
			}
			if !strings.Contains(i.stderr.String(), words) {
				t.Errorf("it does not say %q: %s", words, i.stderr)
			}
			// New episodes follow the earlier ones.
			i.say(person("user 0"), "I moved to Hobart.")
			i.settled(everything("default"), users*turns+1)
			i.kill()
			rebuild(t, i.data, 0, "--check")
		})
	}
}

func write(t testing.TB, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestADamagedStoreIsNamedAndRebuilt: a file that cannot be read ends the start
// with the way out.
func TestADamagedStoreIsNamedAndRebuilt(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	i.say(person("ann"), "I live in Oslo.", "I like Python.", "I moved to Bergen.")
	i.settled(everything("default"), 3)
	want := i.remains()
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(i.files()[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(i.files()[0], info.Size()/2); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, `"palimpsest rebuild --data `+i.data+`" rebuilds it`, "", up(i.data)...)
	refused(t, 1, "palimpsest rebuild", "", "digest", "--data", i.data)
	if out := rebuild(t, i.data, 1, "--check"); out.Live != "" || out.LiveError == "" || out.Rebuilt == "" || out.Switched {
		t.Errorf("check: %+v", out)
	}
	if out := rebuild(t, i.data, 0); !out.Switched || out.Episodes != 3 {
		t.Errorf("rebuild: %+v", out)
	}
	i.begin()
	if diff := cmp.Diff(want, i.remains()); diff != "" {
		t.Errorf("after the rebuild (-before +after):\n%s", diff)
	}
}

// TestDamagedPagesAreNamedAndRebuilt: pages in the middle of the file that cannot be
// read make a running Palimpsest unready, or end its start, and name the command
// that helps.
func TestDamagedPagesAreNamedAndRebuilt(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	ann := person("ann")
	for n := range 40 {
		i.say(ann, turn(fmt.Sprintf("My favourite colour is green. %s", strings.Repeat(fmt.Sprintf("word%d ", n), 200))))
	}
	i.settled(of(ann), 40)
	want := i.remains()
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(i.files()[0])
	if err != nil {
		t.Fatal(err)
	}
	for at := len(raw) / 2; at < len(raw)*3/4; at++ {
		raw[at] = 0x5a
	}
	write(t, i.files()[0], raw)
	help := "palimpsest rebuild --data " + i.data
	if err := i.launch(); err != nil {
		if !strings.Contains(i.stderr.String(), help) {
			t.Errorf("the start ends with %v: %s", err, i.stderr)
		}
	} else {
		eventually(t, "readiness is red", func() error {
			if _, err := i.api.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), help) {
				return fmt.Errorf("ready: %w", err)
			}
			return nil
		})
	}
	i.kill()
	if out := rebuild(t, i.data, 0); !out.Switched || out.Lost != (loss{}) {
		t.Errorf("rebuild: %+v", out)
	}
	i.begin()
	if diff := cmp.Diff(want, i.remains()); diff != "" {
		t.Errorf("after the rebuild (-before +after):\n%s", diff)
	}
}

// trim drops the messages of a stream but the newest n, once the audit log has
// all effects.
func (i *process) trim(name string, n uint64) {
	i.t.Helper()
	to, err := broker.Endpoint(filepath.Join(i.data, "nats"))
	if err != nil {
		i.t.Fatal(err)
	}
	conn, err := broker.Connect(i.t.Context(), to)
	if err != nil {
		i.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		i.t.Fatal(err)
	}
	last := i.lastOf(js, topology.StreamAudit)
	eventually(i.t, "the audit log has every effect", func() error {
		if got := i.loggedUpTo(); got != last {
			return fmt.Errorf("it has %d of %d", got, last)
		}
		return nil
	})
	stream, err := js.Stream(i.t.Context(), name)
	if err == nil {
		err = stream.Purge(i.t.Context(), jetstream.WithPurgeSequence(i.lastOf(js, name)-n+1))
	}
	if err != nil {
		i.t.Fatal(err)
	}
}

func (i *instance) lastOf(js jetstream.JetStream, name string) uint64 {
	i.t.Helper()
	stream, err := js.Stream(i.t.Context(), name)
	if err != nil {
		i.t.Fatal(err)
	}
	return stream.CachedInfo().State.LastSeq
}

// loggedUpTo is the newest sequence that the audit log has.
func (i *process) loggedUpTo() (last uint64) {
	i.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(i.data, "audit.db")+"?mode=ro")
	if err != nil {
		i.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT coalesce(max(sequence), 0) FROM effects").Scan(&last); err != nil {
		i.t.Fatal(err)
	}
	return last
}

// TestP5TheLogStandsInForATrimmedStream: what AUDIT dropped is read from the
// audit log, by a start and by a rebuild; what neither has a rebuild copies from the
// store, or names where that lacks it too.
func TestP5TheLogStandsInForATrimmedStream(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	ann, bea := person("ann"), person("bea")
	i.say(ann, "I live in Oslo.")
	i.settled(everything("default"), 1)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(i.files()[0])
	if err != nil {
		t.Fatal(err)
	}
	i.begin()
	i.say(bea, "I like tea.") // of which nothing is left in AUDIT
	i.settled(of(bea), 1)
	for n, city := range cities {
		i.say(ann, turn("I moved to "+city+"."))
		i.settled(of(ann), n+2)
	}
	i.trim(topology.StreamAudit, 2)
	want := i.remains()
	i.kill()

	rebuild(t, i.data, 0, "--check")
	for name, lose := range map[string]func(){
		"deleted": i.unlink,
		"older":   func() { i.unlink(); write(t, i.files()[0], older) },
	} {
		lose()
		i.begin()
		if diff := cmp.Diff(want, i.remains()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
		if _, err := i.api.Ready(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		i.kill()
	}

	tamper(t, filepath.Join(i.data, "audit.db"), `DELETE FROM effects WHERE revision = 3`)
	if out := rebuild(t, i.data, 1, "--check"); out.ScopesOnlyLive != 1 {
		t.Errorf("check: %+v", out)
	}
	if out := rebuild(t, i.data, 0); out.ScopesOnlyLive != 1 || out.Live != out.Rebuilt || !out.Switched {
		t.Errorf("rebuild: %+v", out)
	}
	gap := "scope default/user/ann/agent/assistant/: revision 3 is neither in AUDIT nor in the audit log; revision 4 follows"
	lost := i.files()[0]
	i.unlink()
	write(t, lost, older)
	refusedLast(t, gap, "rebuild", "--data", i.data)
	i.begin()
	if letters := i.buried(1); !strings.Contains(letters[0].Reason, gap) {
		t.Errorf("dead letters: %+v, want %q", letters, gap)
	}
}

// refusedLast is refused for a command that says how far it is before it fails.
func refusedLast(t testing.TB, words string, args ...string) {
	t.Helper()
	_, stderr, code := run(t, nil, args...)
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if last := lines[len(lines)-1]; code != 1 || !strings.HasPrefix(last, "palimpsest: ") || !strings.Contains(last, words) {
		t.Errorf("%v: exit %d, want 1 and %q; it said %q", args, code, words, stderr)
	}
}

// TestP5OrdinalsOutliveATrimmedStream: what EPISODES dropped is copied from the
// store that is there.
func TestP5OrdinalsOutliveATrimmedStream(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	ann := person("ann")
	for n, city := range cities {
		i.say(ann, turn("I moved to "+city+"."))
		i.settled(of(ann), n+1)
	}
	i.trim(topology.StreamEpisodes, 3)
	want := i.remains()
	i.kill()
	out := rebuild(t, i.data, 0)
	if !out.Switched || out.Episodes != len(cities) || out.Moved != 0 || out.Live != out.Rebuilt {
		t.Errorf("rebuild: %+v", out)
	}
	i.begin()
	if diff := cmp.Diff(want, i.remains()); diff != "" {
		t.Errorf("after the rebuild (-before +after):\n%s", diff)
	}
	i.say(ann, "I moved to Hobart.")
	i.settled(of(ann), len(cities)+1)
	wantSome(t, i.facts(of(ann)), "Hobart")
}

// TestP5ARebuildThatIsKilled leaves the store that there was, and the next one
// succeeds.
func TestP5ARebuildThatIsKilled(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	i.lives()
	i.kill()
	want := rebuild(t, i.data, 0, "--check")
	for _, part := range []string{"episodes", "effects", "vectors"} {
		killAt(t, part, "rebuild", "--data", i.data)
		stdout, stderr, code := run(t, nil, "digest", "--data", i.data)
		if code != 0 || strings.TrimSpace(stdout) != want.Live {
			t.Errorf("killed after the %s: digest %q, %s; want %s", part, stdout, stderr, want.Live)
		}
	}
	if out := rebuild(t, i.data, 0); !out.Switched || out.Live != want.Live || out.Rebuilt != want.Live {
		t.Errorf("rebuild: %+v, want %+v", out, want)
	}
	left, err := filepath.Glob(filepath.Join(i.data, "memory.db.new*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// killAt kills a command as soon as it says that it is done with a part.
func killAt(t testing.TB, part string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	found := false
	for !found && lines.Scan() {
		found = strings.HasPrefix(lines.Text(), part+": ")
	}
	_ = cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, stderr)
	_ = cmd.Wait()
	if !found {
		t.Fatalf("it never was done with the %s", part)
	}
}
