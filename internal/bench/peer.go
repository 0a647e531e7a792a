package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// The peers: processes of the program that a client talks to.
const (
	// PeerBare is a NATS server with one stream, and nothing of ours.
	PeerBare = "nats"
	// PeerBroker is the broker of the product, without a service that reads.
	PeerBroker = "broker"
	// PeerIngest is broker, stores and HTTP, with ingest as the only service.
	PeerIngest = "ingest"
	// PeerWhole is what `palimpsest up` runs.
	PeerWhole = "whole"
)

// startLimit bounds a start; patience whatever must come about in the end.
const (
	startLimit = 30 * time.Second
	patience   = 2 * time.Minute
)

// peer is a running process with a data directory of its own.
type peer struct {
	HTTP, NATS string
	dir        string
	login      func(dir string) (nats.Option, error)
	command    *exec.Cmd
	in         io.Closer      // standard input; closing it stops the process cleanly
	drained    sync.WaitGroup // of its output
	output     tail
}

// start runs a peer until stop, or until ctx ends.
func (b *bench) start(ctx context.Context, name string) (*peer, error) {
	dir, err := b.fresh(name)
	if err != nil {
		return nil, err
	}
	p, err := b.startOver(ctx, name, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

// startOver is start over the files of an earlier peer, which it leaves where they are
// if it fails.
func (b *bench) startOver(ctx context.Context, name, dir string) (*peer, error) {
	p := &peer{dir: dir, login: b.Login}
	args := []string{"bench-peer", name, "--data", dir}
	if b.Profiles != "" {
		args = append(args, "--profile", filepath.Join(b.Profiles, b.measuring+"-"+name+".pprof"))
	}
	p.command = exec.CommandContext(ctx, b.Program, args...) //nolint:gosec // our own binary
	p.command.Env = b.Environ
	p.command.Stderr = &p.output
	out, err := p.command.StdoutPipe()
	if err == nil {
		p.in, err = p.command.StdinPipe() // closed with us, at the latest
	}
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := p.await(out, name != PeerBare); err != nil {
		p.kill()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

var address = regexp.MustCompile(`^\s+(HTTP|NATS)\s+(\S+)`)

// await reads what the process says until its addresses are known, and leaves a
// reader behind for the rest.
func (p *peer) await(out io.Reader, web bool) error {
	lines := make(chan string)
	p.drained.Go(func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	})
	defer func() {
		p.drained.Go(func() {
			for range lines { // until the process ends
			}
		})
	}()
	limit := time.After(startLimit)
	for p.NATS == "" || web && p.HTTP == "" {
		select {
		case line, more := <-lines:
			if !more {
				return fmt.Errorf("it ended before it was ready: %s", p.output.String())
			}
			switch m := address.FindStringSubmatch(line); {
			case m == nil:
			case m[1] == "HTTP":
				p.HTTP = m[2]
			default:
				p.NATS = m[2]
			}
		case <-limit:
			return fmt.Errorf("it is not ready within %v: %s", startLimit, p.output.String())
		}
	}
	return nil
}

// stop kills the process and removes what it wrote.
func (p *peer) stop() error {
	p.kill()
	return os.RemoveAll(p.dir)
}

// drainLimit bounds an end in good order.
const drainLimit = 20 * time.Second

// drain lets the process end by itself, so that it writes its profile.
func (p *peer) drain() {
	_ = p.in.Close()
	hurry := time.AfterFunc(drainLimit, func() { _ = p.command.Process.Kill() })
	defer hurry.Stop()
	p.wait()
}

// wait returns once the process has ended.
func (p *peer) wait() {
	if p.command.ProcessState != nil {
		return
	}
	p.drained.Wait()
	_ = p.command.Wait() // that it was killed is no news
}

// kill ends the process and leaves its files.
func (p *peer) kill() {
	_ = p.command.Process.Kill() // it may have ended by itself
	p.wait()
}

// with runs f against a fresh peer.
func (b *bench) with(ctx context.Context, name string, f func(*peer) error) error {
	p, err := b.start(ctx, name)
	if err != nil {
		return err
	}
	err = f(p)
	if b.Profiles != "" {
		p.drain()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
		if output := p.output.String(); output != "" && ctx.Err() == nil {
			err = fmt.Errorf("%w (output: %s)", err, output)
		}
		return errors.Join(err, p.stop())
	}
	return p.stop()
}

// tail keeps the end of what a process says.
type tail struct {
	mu    sync.Mutex
	text  []byte
	tried int
}

// trial is what a reader says before it handles messages one by one.
const trial = "handle messages one by one"

// trials counts how often the process printed "trial".
func (t *tail) trials() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tried
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried += bytes.Count(p, []byte(trial))
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-2<<10):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
