// Package background starts this program once, in a process that continues when its
// caller ends.
package background

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gofrs/flock"
)

const (
	// startLimit bounds how long a process that was started in the background may
	// take to answer.
	startLimit = 30 * time.Second
	// startAgain is how often it is asked.
	startAgain = 50 * time.Millisecond
)

// InUse is the exit code of a program whose data directory another process uses.
const InUse = 3

// Program is a call of this program that outlives its caller.
type Program struct {
	Dir     string      // holds its data, its log up.log, and its process id up.pid
	Args    []string    // its arguments
	Environ []string    // its environment
	Answers func() bool // reports whether it runs and answers
}

// Start returns once p answers. Of several callers that find no answer, one starts
// it, under a lock in its directory.
func Start(ctx context.Context, p Program) error {
	if p.Answers() {
		return nil
	}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	lock := flock.New(filepath.Join(p.Dir, "start.lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, startAgain); err != nil {
		return fmt.Errorf("wait for another start: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	if p.Answers() {
		return nil
	}
	return p.detach(ctx)
}

// detach starts p in a session of its own and returns once it answers.
func (p Program) detach(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	file := filepath.Join(p.Dir, "up.log")
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	run := exec.Command(program, p.Args...) //nolint:noctx,gosec // it is this program, and outlives this process
	run.Stdout, run.Stderr, run.SysProcAttr, run.Env = log, log, apart(), p.Environ
	if err := run.Start(); err != nil {
		return err
	}
	// Users stop it by this file; a stale one is replaced at the next start.
	pid := filepath.Join(p.Dir, "up.pid")
	earlier, _ := os.ReadFile(pid) // there may be none
	if err := os.WriteFile(pid, []byte(strconv.Itoa(run.Process.Pid)+"\n"), 0o600); err != nil {
		return errors.Join(err, run.Process.Kill(), run.Wait())
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	again := time.NewTicker(startAgain)
	defer again.Stop()
	for !p.Answers() {
		select {
		case <-again.C:
		case err := <-ended:
			if run.ProcessState.ExitCode() == InUse { // an earlier start, whose caller died, is under way
				ended = nil
				if err := os.WriteFile(pid, earlier, 0o600); err != nil { //nolint:gosec // it is the previous file
					return err
				}
				continue
			}
			return errors.Join(fmt.Errorf("it ended; see %s", file), err)
		case <-ctx.Done():
			return fmt.Errorf("it did not answer; see %s: %w", file, ctx.Err())
		}
	}
	return nil
}

type waiting struct {
	started <-chan struct{}
	next    http.RoundTripper
}

// Await returns a transport that sends requests through next once started is closed.
func Await(started <-chan struct{}, next http.RoundTripper) http.RoundTripper {
	return waiting{started, next}
}

// RoundTrip implements [http.RoundTripper].
func (w waiting) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-w.started:
		return w.next.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
