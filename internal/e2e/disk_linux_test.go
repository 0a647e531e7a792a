package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// diskBytes is the size of the small disk; a tenth of it is the reserve.
const diskBytes = 128 << 20

// ownDisk says that the process may mount.
const ownDisk = "E2E_OWN_DISK"

// onSmallDisk runs the calling test once more, in a process that is root of
// namespaces of its own and so may mount, and returns a small disk there. In the
// outer process ok is false: the test has run.
func onSmallDisk(t *testing.T) (dir string, ok bool) {
	t.Helper()
	if os.Getenv(ownDisk) != "" {
		dir = t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskBytes)); err != nil {
			t.Skipf("no small disk to fill: mount tmpfs: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Errorf("unmount: %v", err)
			}
		})
		return dir, true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), ownDisk+"=1", builtEnv+"="+program)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil:
		t.Skipf("no small disk to fill: namespaces: %v", err)
	case err != nil:
		t.Fatalf("%v:\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	}
	return "", false
}

// fill writes a file that leaves the given number of bytes free.
func fill(t *testing.T, dir string, leave int64) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 64<<10)
	for left := int64(fs.Bavail)*fs.Bsize - leave; left > 0; left -= int64(len(chunk)) {
		if _, err := f.Write(chunk[:min(left, int64(len(chunk)))]); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// tellOne publishes one numbered message, and reports whether it was acknowledged.
func (i *instance) tellOne(who scope.Scope, n int) error {
	msg := nats.NewMsg(events.EpisodeSubject(who))
	msg.Data = fmt.Appendf(nil, `{"content": "message %d: %s"}`, n, strings.Repeat("x", 2000))
	_, err := i.js.PublishMsg(i.t.Context(), msg, jetstream.WithRetryAttempts(0))
	return err
}

// stored waits until every one of the acknowledged messages is stored.
func (i *instance) stored(who scope.Scope, acknowledged []int) {
	i.t.Helper()
	eventually(i.t, fmt.Sprintf("%d acknowledged messages are stored", len(acknowledged)), func() error {
		l, err := i.project(of(who)).Ledger(i.t.Context(), of(who), false)
		if err != nil {
			return err
		}
		for _, a := range l.Totals {
			if a.Rule == "turn" && a.Pending == 0 && a.Accepted >= uint64(len(acknowledged)) && l.Balanced {
				return nil
			}
		}
		return fmt.Errorf("ledger %+v", l)
	})
	got := map[string]int{}
	for _, said := range contents(i.recent(of(who))) {
		name, _, _ := strings.Cut(said, ":")
		got[name]++
	}
	for _, n := range acknowledged {
		if name := fmt.Sprintf("message %d", n); got[name] == 0 {
			i.t.Errorf("%s was acknowledged and is lost", name)
		}
	}
}

// TestP7FaultDiskFull fills the disk up to the reserve: new episodes are refused
// while reads go on, and are taken again once there is room, without a hand.
func TestP7FaultDiskFull(t *testing.T) {
	t.Parallel()
	dir, ok := onSmallDisk(t)
	if !ok {
		return
	}
	i := start(t, filepath.Join(dir, "data"))
	ann := person("ann")
	i.say(ann, "I live in Oslo.")
	i.settled(of(ann), 1)
	free := fill(t, dir, diskBytes/10-(2<<20))
	var refused *jetstream.APIError
	eventually(t, "the stream refuses", func() error {
		if err := i.tellOne(person("bob"), 0); !errors.As(err, &refused) {
			return fmt.Errorf("answer: %w", err)
		}
		return nil
	})
	record := api.Record{Scope: api.ScopeOf(ann), Messages: api.Messages{{Content: "hello"}}}
	_, err := i.api.Record(t.Context(), record, "")
	wantProblem(t, "POST /v1/episodes", err, http.StatusInsufficientStorage, api.CodeStorageFull)
	_, err = i.api.Remember(t.Context(), api.Remember{Scope: api.ScopeOf(ann), Text: "Ann has a cat."}, "")
	wantProblem(t, "POST /v1/facts", err, http.StatusInsufficientStorage, api.CodeStorageFull)
	if r, err := i.api.Ready(t.Context()); err == nil || r.Checks["nats"].OK || !strings.Contains(r.Checks["nats"].Error, "disk is full") {
		t.Errorf("readiness %+v, %v", r, err)
	}
	wantOne(t, i.facts(of(ann)), "Oslo") // reads go on
	if _, err := i.api.Search(t.Context(), api.Search{Selector: api.Selector{User: &ann.User}, Text: "Oslo"}); err != nil {
		t.Errorf("search: %v", err)
	}
	free()
	eventually(t, "episodes are taken again", func() error {
		_, err := i.api.Record(t.Context(), record, "")
		return err
	})
	i.say(ann, "I moved to Rome.")
	i.settled(of(ann), 3)
	wantOne(t, i.facts(of(ann)), "Rome")
	if _, err := i.api.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestP7FaultNoSpaceLeft fills the disk during a stream of publishes, faster than
// the guard of the reserve looks, so that the engines themselves meet ENOSPC: all
// acknowledged messages are there once space is back, and after a kill.
func TestP7FaultNoSpaceLeft(t *testing.T) {
	t.Parallel()
	dir, ok := onSmallDisk(t)
	if !ok {
		return
	}
	i := start(t, filepath.Join(dir, "data"))
	ann := person("ann")
	var acknowledged []int
	n := 0
	tell := func() error {
		err := i.tellOne(ann, n)
		if err == nil {
			acknowledged = append(acknowledged, n)
		}
		n++
		return err
	}
	for range 50 {
		if err := tell(); err != nil {
			t.Fatal(err)
		}
	}
	var free func()
	var wait sync.WaitGroup
	wait.Go(func() { free = fill(t, dir, 0) })
	refusals := 0
	for until := time.Now().Add(patience); refusals < 3 && time.Now().Before(until); {
		if err := tell(); err != nil {
			refusals++
		}
	}
	wait.Wait()
	if refusals == 0 {
		t.Fatalf("%d messages found room on a full disk", n)
	}
	free()
	eventually(t, "episodes are taken again", func() error { return tell() })
	t.Logf("%d of %d acknowledged", len(acknowledged), n)
	i.stored(ann, acknowledged)
	eventually(t, "ready", func() error { _, err := i.api.Ready(t.Context()); return err })
	i.restart()
	i.stored(ann, acknowledged)
	if letters := i.buried(0); len(letters) > 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// TestFaultDataDirectoryIsReadOnly starts the program where nothing can be
// written, which permissions alone do not forbid to root.
func TestFaultDataDirectoryIsReadOnly(t *testing.T) {
	t.Parallel()
	dir, ok := onSmallDisk(t)
	if !ok {
		return
	}
	data := filepath.Join(dir, "data")
	i := start(t, data)
	i.say(person("ann"), "I live in Oslo.")
	i.settled(of(person("ann")), 1)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	remount := func(flags uintptr) {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	remount(syscall.MS_RDONLY)
	refused(t, 1, data, "", up(data)...)
	refused(t, 1, filepath.Join(dir, "other"), "", up(filepath.Join(dir, "other"))...)
	remount(0)
	i.begin()
	wantOne(t, i.facts(of(person("ann"))), "Oslo")
}
