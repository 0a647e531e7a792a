package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

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
