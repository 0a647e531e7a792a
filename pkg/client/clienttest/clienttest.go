// Package clienttest starts a Palimpsest for a test.
package clienttest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"palimpsest/pkg/client"
)

// Program is the variable of the environment that names the program. Without it,
// palimpsest is looked up in PATH.
const Program = "TEST_PALIMPSEST"

// patience bounds a start and an end. It is generous: the machine may be busy.
const patience = time.Minute

// Server is a running Palimpsest.
type Server struct {
	*client.Client

	// HTTP and NATS are its addresses, such as http://127.0.0.1:40123.
	HTTP, NATS string
}

// Start runs `palimpsest up --ephemeral` on free ports of the loopback until the end
// of the test. Its data is in a temporary directory, which it removes. args are
// further arguments, such as --config FILE. Start skips the test if there is no
// program, and fails it if the program does not become ready within a minute.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	program := os.Getenv(Program)
	if program == "" {
		var err error
		if program, err = exec.LookPath("palimpsest"); err != nil {
			t.Skip("there is no program palimpsest; set " + Program)
		}
	}
	run := exec.Command(program, append([]string{"up", "--ephemeral", "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"}, args...)...)
	var errs bytes.Buffer
	run.Stderr, run.SysProcAttr = &errs, tied()
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	addresses, read := make(chan map[string]string, 1), make(chan struct{})
	go func() {
		defer close(read)
		announced(bufio.NewScanner(out), addresses)
	}()
	t.Cleanup(func() {
		end(run, read)
		if t.Failed() {
			t.Logf("palimpsest:\n%s", errs.String())
		}
	})
	s := &Server{}
	select {
	case at := <-addresses:
		s.HTTP, s.NATS = at["HTTP"], at["NATS"]
	case <-read:
		t.Fatal("palimpsest ended before it was ready")
	case <-time.After(patience):
		t.Fatalf("palimpsest was not ready within %v", patience)
	}
	if s.Client, err = client.New(s.HTTP); err != nil {
		t.Fatal(err)
	}
	return s
}

// announced reads the output to its end, and sends the addresses once both are
// printed, which they are when the server is ready.
func announced(lines *bufio.Scanner, addresses chan<- map[string]string) {
	at := map[string]string{}
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "HTTP" && fields[0] != "NATS" || at[fields[0]] != "" {
			continue
		}
		at[fields[0]] = fields[1]
		if len(at) == 2 {
			addresses <- at
		}
	}
}

// end asks the program to end, and kills one that does not.
func end(run *exec.Cmd, read <-chan struct{}) {
	_ = run.Process.Signal(syscall.SIGTERM)
	select {
	case <-read:
	case <-time.After(patience):
		_ = run.Process.Kill()
	}
	_ = run.Wait()
}
