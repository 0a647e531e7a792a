package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/testengine/redisdouble"
	"palimpsest/pkg/events"
)

// natsProgram is the path of a nats-server, built by the first test that wants
// one.
var natsProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(program), "nats-server")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build nats-server: %w\n%s", err, out)
	}
	return path, nil
})

// natsServer is a server that is not ours, in a process of its own.
type natsServer struct {
	t       testing.TB
	dir     string
	port    string
	guards  string // a file of accounts, if it has any, and its variables
	cluster string // settings of a cluster; empty for a single one
	environ []string
	process *exec.Cmd
	said    *tail
	read    chan struct{} // closed once all that the process wrote is in said

	mu      sync.Mutex
	refused []string // its log lines about refused permissions
}

func startNATS(t testing.TB) *natsServer {
	t.Helper()
	return beginNATS(t, "")
}

// beginNATS starts a server that may be one of a cluster.
func beginNATS(t testing.TB, cluster string) *natsServer {
	t.Helper()
	n := &natsServer{t: t, dir: t.TempDir(), port: "-1", cluster: cluster}
	n.run()
	return n
}

// run runs the server until the end of the test.
func (n *natsServer) run() {
	n.t.Helper()
	n.begin()
	n.t.Cleanup(func() {
		n.kill()
		if n.t.Failed() {
			n.t.Logf("nats-server said:\n%s", n.said)
		}
	})
}

func (n *natsServer) url() string { return "nats://127.0.0.1:" + n.port }

var listening = regexp.MustCompile(`Listening for client connections on 127\.0\.0\.1:(\d+)`)

// begin starts the server, on its port if it had one, and returns once it is
// ready.
func (n *natsServer) begin() {
	n.t.Helper()
	path, err := natsProgram()
	if err != nil {
		n.t.Fatal(err)
	}
	config := filepath.Join(n.dir, "nats.conf")
	text := fmt.Sprintf("listen: 127.0.0.1:%s\nmax_payload: 8MB\nmax_control_line: 16KB\njetstream { store_dir: %q }\n", n.port, n.dir)
	if n.guards != "" {
		text += fmt.Sprintf("include %q\n", n.guards)
	}
	text += n.cluster
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	said, read := &tail{}, make(chan struct{})
	n.process, n.said, n.read = exec.Command(path, "-c", config), said, read
	n.process.Env = append(os.Environ(), n.environ...)
	tie(n.process)
	out, err := n.process.StderrPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := n.process.Start(); err != nil {
		n.t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(read)
		port := ""
		for s := bufio.NewScanner(out); s.Scan(); {
			_, _ = said.Write(append(s.Bytes(), '\n'))
			if strings.Contains(s.Text(), "Violation") {
				n.mu.Lock()
				n.refused = append(n.refused, s.Text())
				n.mu.Unlock()
			}
			if m := listening.FindStringSubmatch(s.Text()); m != nil {
				port = m[1]
			}
			if strings.Contains(s.Text(), "Server is ready") {
				ready <- port
			}
		}
		close(ready)
	}()
	select {
	case port := <-ready:
		if port == "" {
			n.t.Fatalf("nats-server did not start:\n%s", n.said)
		}
		n.port = port
	case <-time.After(startLimit):
		n.t.Fatalf("nats-server is not ready within %v:\n%s", startLimit, n.said)
	}
}

func (n *natsServer) kill() {
	_ = n.process.Process.Kill()
	n.wait()
}

// wait returns once the process ended and its last line is read.
func (n *natsServer) wait() {
	<-n.read
	_ = n.process.Wait()
}

// redisNamespace is a part of the server that TEST_REDIS_URL names which is a
// test's own, and is emptied in the end; a double of its own where it names none.
func redisNamespace(t testing.TB) (url, namespace string) {
	t.Helper()
	url = os.Getenv("TEST_REDIS_URL")
	if url == "" {
		return redisdouble.Start(t), "pal"
	}
	options, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	namespace = "e2e-" + events.HashID(t.Name(), t.TempDir())
	t.Cleanup(func() {
		client := goredis.NewClient(options)
		defer client.Close()
		if err := empty(context.Background(), client, namespace); err != nil {
			t.Errorf("empty namespace %s: %v", namespace, err)
		}
	})
	return url, namespace
}

func empty(ctx context.Context, client *goredis.Client, namespace string) error {
	indexes, err := client.FT_List(ctx).Result()
	if err != nil {
		return err
	}
	for _, index := range indexes {
		if strings.HasPrefix(index, namespace+":") {
			if err := client.FTDropIndex(ctx, index).Err(); err != nil {
				return err
			}
		}
	}
	keys := client.Scan(ctx, 0, namespace+":*", 512).Iterator()
	for keys.Next(ctx) {
		if err := client.Unlink(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return keys.Err()
}
