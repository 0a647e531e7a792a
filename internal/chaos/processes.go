package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// processes runs the processes of a plan, each in one life after the other.
type processes struct {
	program string
	plan    Plan
	log     io.Writer
	// failed receives the error of a process that ended without a kill.
	failed chan error

	mu    sync.Mutex
	lives []*process // by place: the one under way
	eyes  sync.WaitGroup
}

func newProcesses(program string, plan Plan, log io.Writer) *processes {
	return &processes{program: program, plan: plan, log: log, failed: make(chan error, 1), lives: make([]*process, len(plan.Processes))}
}

// begin starts all processes at once and returns when they are ready.
func (c *processes) begin(ctx context.Context) error {
	for place := range c.plan.Processes {
		if _, err := c.launch(place); err != nil {
			return err
		}
	}
	return c.await(ctx)
}

// launch begins a life of the process at a place, and keeps an eye on it.
func (c *processes) launch(place int) (*process, error) {
	l, err := c.plan.launch(c.program, c.plan.Processes[place], c.log)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.lives[place] = l
	c.mu.Unlock()
	c.eyes.Go(func() {
		<-l.ended
		if l.doomed.Load() {
			return
		}
		select {
		case c.failed <- fmt.Errorf("%s: %w: exit code %d", l.of.Name, ErrEnded, l.cmd.ProcessState.ExitCode()):
		default: // one is enough
		}
	})
	return l, nil
}

func (c *processes) life(place int) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lives[place]
}

// all are those that were started.
func (c *processes) all() (found []*process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lives {
		if l != nil {
			found = append(found, l)
		}
	}
	return found
}

// await returns once all are ready.
func (c *processes) await(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range c.all() {
		group.Go(func() error { return l.await(ctx) })
	}
	return group.Wait()
}

// answers is the address of one that can be asked, empty where none can.
func (c *processes) answers() string {
	for _, l := range c.all() {
		if l.of.Answers && l.isReady() && !l.doomed.Load() {
			return l.http
		}
	}
	return ""
}

// stop asks all to drain and end.
func (c *processes) stop(ctx context.Context) error {
	if err := c.await(ctx); err != nil {
		return err
	}
	var wait sync.WaitGroup
	all := c.all()
	errs := make([]error, len(all))
	for n, l := range all {
		wait.Go(func() { errs[n] = l.stop() })
	}
	wait.Wait()
	c.eyes.Wait()
	return errors.Join(errs...)
}

// kill ends all that still run.
func (c *processes) kill() {
	for _, l := range c.all() {
		l.kill()
	}
	c.eyes.Wait()
}

// startLimit bounds a start, and a stop that was asked for: both are work on
// whatever the last kill left.
const startLimit = 2 * time.Minute

// ErrEnded: the process ended by itself, which no kill explains.
var ErrEnded = errors.New("chaos: the process ended by itself")

// process is one life of one process under test.
type process struct {
	of    Process
	cmd   *exec.Cmd
	began time.Time

	ready chan struct{} // closed once it is; never where it dies before
	ended chan struct{} // closed once it has ended, for whatever reason
	// doomed: it was killed, or asked to end.
	doomed atomic.Bool

	// To be read once it is ready.
	http, nats string
	took       time.Duration
}

// launch starts a process of the plan. Its output goes to log.
func (p Plan) launch(program string, of Process, log io.Writer) (*process, error) {
	l := &process{
		of:    of,
		cmd:   exec.Command(program, p.command(of.Args)...), //nolint:gosec,noctx // it is this program, and outlives no kill
		began: time.Now(), ready: make(chan struct{}), ended: make(chan struct{}),
	}
	l.cmd.Env, l.cmd.Stderr = p.environ(), log
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", of.Name, err)
	}
	if err := l.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", of.Name, err)
	}
	go func() {
		l.listen(out, !p.shared())
		_ = l.cmd.Wait()
		close(l.ended)
	}()
	return l, nil
}

var addressLine = regexp.MustCompile(`^\s+(HTTP|NATS)\s+(\S+)`)

// listen reads what the process says, to its end.
func (l *process) listen(out io.Reader, broker bool) {
	told := false
	for s := bufio.NewScanner(out); s.Scan(); {
		switch m := addressLine.FindStringSubmatch(s.Text()); {
		case m == nil || told:
			continue
		case m[1] == "HTTP":
			l.http = m[2]
		default:
			l.nats = m[2]
		}
		if l.http != "" && (l.nats != "" || !broker) {
			told, l.took = true, time.Since(l.began)
			close(l.ready)
		}
	}
}

// isReady reports whether it can be asked.
func (l *process) isReady() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// await returns once the process is ready.
func (l *process) await(ctx context.Context) error {
	select {
	case <-l.ready:
		return nil
	case <-l.ended:
		return fmt.Errorf("start %s: %w before it was ready", l.of.Name, ErrEnded)
	case <-time.After(startLimit):
		return fmt.Errorf("start %s: not ready within %v", l.of.Name, startLimit)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill ends the process without a signal that it can handle, as a power cut would.
func (l *process) kill() {
	l.doomed.Store(true)
	_ = l.cmd.Process.Kill()
	<-l.ended
}

// stop asks the process to drain and end.
func (l *process) stop() error {
	l.doomed.Store(true)
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		l.kill()
		return fmt.Errorf("stop %s: %w", l.of.Name, err)
	}
	select {
	case <-l.ended:
	case <-time.After(startLimit):
		l.kill()
		return fmt.Errorf("stop %s: it did not drain within %v", l.of.Name, startLimit)
	}
	if code := l.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("stop %s: exit code %d", l.of.Name, code)
	}
	return nil
}
