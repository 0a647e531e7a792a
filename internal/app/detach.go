package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/gofrs/flock"

	"palimpsest/internal/config"
	"palimpsest/pkg/client"
)

const (
	// startLimit bounds how long a process that was started in the background may
	// take to answer.
	startLimit = 30 * time.Second
	// startAgain is how often it is asked.
	startAgain = 50 * time.Millisecond
	// answersLimit bounds one such question.
	answersLimit = 2 * time.Second
)

// StartedClient is Client for a Palimpsest that need not run: if the configuration
// is that of one process, no server is named and none answers, it starts one in the
// background, which goes on when this process ends. Calls wait until it answers.
// failed is called if it cannot be started; calls then fail as usual.
func (inv *Invocation) StartedClient(failed func(error)) (*client.Client, error) {
	cfg, settings, err := inv.Configuration(nil)
	if err != nil {
		return nil, err
	}
	if inv.flags.Server != "" || cfg.NATS.URL != natsEmbedded {
		return inv.Client()
	}
	started := make(chan struct{})
	go func() {
		defer close(started)
		if err := inv.ensure(cfg, settings); err != nil && inv.ctx.Err() == nil {
			failed(fmt.Errorf("start Palimpsest: %w", err))
		}
	}()
	return inv.clientThrough(inv.asked(), waiting{started, answering()})
}

// waiting sends requests once a server has been started.
type waiting struct {
	started <-chan struct{}
	next    http.RoundTripper
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

// ensure returns once the configured process answers. Of several that find none, one
// starts it, under a lock beside its data.
func (inv *Invocation) ensure(cfg *Config, settings *config.Settings) error {
	if inv.answers() {
		return nil
	}
	dir, err := lasting(cfg.Data, settings)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(inv.ctx, startLimit)
	defer cancel()
	lock := flock.New(filepath.Join(dir, "start.lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, startAgain); err != nil {
		return fmt.Errorf("wait for another start: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	if inv.answers() {
		return nil
	}
	return inv.detach(ctx, dir)
}

// lasting is the data directory for a process that outlives the directory of its
// caller: the configured one, or that of the user's account.
func lasting(configured string, settings *config.Settings) (string, error) {
	for _, s := range settings.All() {
		if s.Key == "data" && s.Origin != config.Default {
			return filepath.Abs(configured)
		}
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "palimpsest"), nil
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "palimpsest"), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "share", "palimpsest"), err
}

// detach starts `up` in a session of its own and returns once it answers.
func (inv *Invocation) detach(ctx context.Context, dir string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "up.log")
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	args := []string{"up", "--data", dir}
	if inv.flags.ConfigFile != "" {
		args = append(args, "--config", inv.flags.ConfigFile)
	}
	run := exec.Command(program, args...) //nolint:noctx,gosec // it is this program, and outlives this process
	run.Stdout, run.Stderr, run.SysProcAttr, run.Env = log, log, apart(), inv.term.Environ
	if err := run.Start(); err != nil {
		return err
	}
	// Users stop it by this file; a stale one is replaced at the next start.
	if err := os.WriteFile(filepath.Join(dir, "up.pid"), []byte(strconv.Itoa(run.Process.Pid)+"\n"), 0o600); err != nil {
		return errors.Join(err, run.Process.Kill(), run.Wait())
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	again := time.NewTicker(startAgain)
	defer again.Stop()
	for !inv.answers() {
		select {
		case <-again.C:
		case err := <-ended:
			return errors.Join(fmt.Errorf("it ended; see %s", file), err)
		case <-ctx.Done():
			return fmt.Errorf("it did not answer; see %s: %w", file, ctx.Err())
		}
	}
	return nil
}

// answers reports whether a server answers at the configured address.
func (inv *Invocation) answers() bool {
	server, err := inv.server()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(inv.ctx, answersLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/healthz", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}
