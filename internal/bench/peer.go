package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
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
	command    *exec.Cmd
	drained    sync.WaitGroup // of what it says
	said       tail
}

// start runs a peer until stop, or until ctx ends.
func (b *bench) start(ctx context.Context, name string) (*peer, error) {
	dir, err := b.fresh(name)
	if err != nil {
		return nil, err
	}
	p := &peer{dir: dir}
	p.command = exec.CommandContext(ctx, b.Program, "bench-peer", name, "--data", dir) //nolint:gosec // our own binary
	p.command.Env = b.Environ
	p.command.Stderr = &p.said
	out, err := p.command.StdoutPipe()
	if err == nil {
		_, err = p.command.StdinPipe() // closed with us, which ends the peer
	}
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), os.RemoveAll(dir))
	}
	if err := p.await(out, name != PeerBare); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), p.stop())
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
				return fmt.Errorf("it ended before it was ready: %s", p.said.String())
			}
			switch m := address.FindStringSubmatch(line); {
			case m == nil:
			case m[1] == "HTTP":
				p.HTTP = m[2]
			default:
				p.NATS = m[2]
			}
		case <-limit:
			return fmt.Errorf("it is not ready within %v: %s", startLimit, p.said.String())
		}
	}
	return nil
}

// stop kills the process and removes what it wrote.
func (p *peer) stop() error {
	p.kill()
	return os.RemoveAll(p.dir)
}

// kill ends the process and leaves its files.
func (p *peer) kill() {
	if p.command.ProcessState != nil {
		return
	}
	_ = p.command.Process.Kill() // it may have ended by itself
	p.drained.Wait()
	_ = p.command.Wait()
}

// with runs f against a fresh peer.
func (b *bench) with(ctx context.Context, name string, f func(*peer) error) error {
	p, err := b.start(ctx, name)
	if err != nil {
		return err
	}
	if err := f(p); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
		if said := p.said.String(); said != "" && ctx.Err() == nil {
			err = fmt.Errorf("%w (it said: %s)", err, said)
		}
		return errors.Join(err, p.stop())
	}
	return p.stop()
}

// tail keeps the end of what a process says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-2<<10):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
