package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startLimit bounds a start. It is generous: the machine may be busy.
const startLimit = 60 * time.Second

// process is a Palimpsest in one process, over a data directory, which a test may
// kill, start again, and meddle with.
type process struct {
	*instance

	data string
	args []string
	env  []string // besides the tests' own
	file string   // of the binary

	cmd    *exec.Cmd
	done   chan error // receives the exit, once
	stderr *tail
}

// start runs `palimpsest up` on free ports over a data directory.
func start(t testing.TB, data string, args ...string) *process {
	t.Helper()
	i := prepare(t, data, args...)
	i.begin()
	return i
}

// prepare is start without the start.
func prepare(t testing.TB, data string, args ...string) *process {
	t.Helper()
	i := &process{instance: &instance{t: t}, data: data, args: args, file: program, stderr: &tail{}}
	t.Cleanup(func() {
		i.kill()
		if t.Failed() {
			t.Logf("the program said:\n%s", i.stderr)
		}
	})
	return i
}

var ready = regexp.MustCompile(`^\s+(HTTP|NATS)\s+(\S+)`)

func (i *process) begin() {
	i.t.Helper()
	if err := i.launch(); err != nil {
		i.kill()
		i.t.Fatalf("%v:\n%s", err, i.stderr)
	}
}

// launch starts the process and connects to it. Also one that ends before that
// answers to done.
func (i *process) launch() error {
	args := append([]string{"up", "--data", i.data, "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"}, i.args...)
	i.cmd, i.conn = exec.Command(i.file, args...), nil
	i.cmd.Env = append(os.Environ(), i.env...)
	tie(i.cmd)
	i.stderr = &tail{}
	i.cmd.Stderr = i.stderr
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := i.cmd.Start(); err != nil {
		i.cmd = nil
		return err
	}
	said := make(map[string]string)
	err = await(out, said, "HTTP", "NATS")
	if err != nil {
		_ = i.cmd.Process.Kill()
	}
	i.HTTP, i.NATS = said["HTTP"], said["NATS"]
	cmd, done := i.cmd, make(chan error, 1)
	i.done = done
	go func() { done <- cmd.Wait() }()
	if err != nil {
		return err
	}
	return i.connect()
}

// await reads what a process says until it has told all the addresses asked for,
// and drops the rest.
func await(out io.Reader, said map[string]string, names ...string) error {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	defer func() {
		go func() {
			for range lines {
			}
		}()
	}()
	limit := time.After(startLimit)
	for len(said) < len(names) {
		select {
		case line, ok := <-lines:
			if !ok {
				return errors.New("the program ended before it was ready")
			}
			if m := ready.FindStringSubmatch(line); m != nil && slices.Contains(names, m[1]) {
				said[m[1]] = m[2]
			}
		case <-limit:
			return fmt.Errorf("not ready within %v", startLimit)
		}
	}
	return nil
}

// kill ends the process without a signal that it can handle, as a power cut would.
func (i *process) kill() {
	if i.cmd == nil {
		return
	}
	i.conn.Close()
	_ = i.cmd.Process.Kill()
	<-i.done
	i.cmd = nil
}

// stop asks the process to end and returns its exit error.
func (i *process) stop() error {
	i.t.Helper()
	i.conn.Close()
	return i.terminate()
}

// terminate is stop with clients still connected.
func (i *process) terminate() error {
	i.t.Helper()
	defer i.conn.Close()
	if err := i.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		i.t.Fatal(err)
	}
	select {
	case err := <-i.done:
		i.cmd = nil
		return err
	case <-time.After(startLimit):
		i.t.Fatalf("did not drain within %v:\n%s", startLimit, i.stderr)
		return nil
	}
}

// ended waits until the process has ended by itself, and returns its exit code
// and the end of its output.
func (i *process) ended() (code int, said string) {
	i.t.Helper()
	select {
	case <-i.done:
	case <-time.After(startLimit):
		i.t.Fatalf("did not end within %v:\n%s", startLimit, i.stderr)
	}
	i.conn.Close()
	code = i.cmd.ProcessState.ExitCode()
	i.cmd = nil
	return code, i.stderr.String()
}

// restart begins again over the same data.
func (i *process) restart() {
	i.t.Helper()
	i.kill()
	i.begin()
}

// run runs one command of the program to its end.
func run(t testing.TB, stdin io.Reader, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%v did not end within %v: %s", args, patience, errs.String())
	}
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// tail keeps the end of what a process says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	if over := len(w.text) - 16<<10; over > 0 {
		w.text = w.text[over:]
	}
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}
