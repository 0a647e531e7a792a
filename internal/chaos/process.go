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
	"time"
)

// startLimit bounds a start, and a stop that was asked for: both are work on
// whatever the last kill left.
const startLimit = 2 * time.Minute

// ErrEnded: the process ended by itself, which no kill explains.
var ErrEnded = errors.New("chaos: the process ended by itself")

// process is one life of the program under test.
type process struct {
	cmd   *exec.Cmd
	http  string
	nats  string
	ended chan struct{} // closed once it has ended, for whatever reason
}

// begin runs `up` over a data directory on free ports of the loopback, and
// returns when it is ready. What it says goes to log.
func begin(ctx context.Context, program, data string, log io.Writer) (*process, error) {
	p := &process{
		cmd:   exec.Command(program, "up", "--data", data, "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"), //nolint:gosec,noctx // it is this program, and outlives no kill
		ended: make(chan struct{}),
	}
	p.cmd.Env, p.cmd.Stderr = ownEngines(), log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	lines := make(chan string, 16) // all that it says at its start
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case lines <- s.Text():
			default: // nobody listens any more
			}
		}
	}()
	go func() {
		<-read
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.await(ctx, lines); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

var addressLine = regexp.MustCompile(`^\s+(HTTP|NATS)\s+(\S+)`)

// await reads until both addresses are known.
func (p *process) await(ctx context.Context, lines <-chan string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for p.http == "" || p.nats == "" {
		select {
		case line, more := <-lines:
			if !more {
				return fmt.Errorf("start Palimpsest: %w before it was ready", ErrEnded)
			}
			switch m := addressLine.FindStringSubmatch(line); {
			case m == nil:
			case m[1] == "HTTP":
				p.http = m[2]
			default:
				p.nats = m[2]
			}
		case <-ctx.Done():
			return fmt.Errorf("start Palimpsest: %w", ctx.Err())
		}
	}
	return nil
}

// kill ends the process as a power cut would: it is told nothing.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop asks the process to drain and end.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.kill()
		return fmt.Errorf("stop Palimpsest: %w", err)
	}
	select {
	case <-p.ended:
	case <-time.After(startLimit):
		p.kill()
		return fmt.Errorf("stop Palimpsest: it did not drain within %v", startLimit)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("stop Palimpsest: exit code %d", code)
	}
	return nil
}

// ownEngines is the environment of a process that keeps everything itself,
// whatever engines the user has: they are not to be killed, nor filled.
func ownEngines() []string {
	return append(os.Environ(), "PALIMPSEST_MEMORY=sqlite", "PALIMPSEST_AUDIT=sqlite", "PALIMPSEST_NATS_URL=embedded")
}
