package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/testengine/clickhouseserver"
)

// services are the processes of a cluster, in the order in which data meets them.
var services = []string{"ingest", "scheduler", "extractor", "decider", "consolidator", "query"}

// cluster is Palimpsest as processes of one service each, on a NATS server, a
// Redis and a ClickHouse.
type cluster struct {
	*instance // the address of its users; no process of its own

	nats       *natsServer   // the first of them
	brokers    []*natsServer // more than one where the streams are replicated
	clickhouse string
	config     string
	members    []*member
}

// startCluster runs so many replicas of each service, all started at once over
// engines that hold nothing.
func startCluster(t testing.TB, replicas int, settings ...string) *cluster {
	t.Helper()
	return startClusterOn(t, ownEngines(t), replicas, settings...)
}

// engines are what a cluster works on, besides its own NATS server.
type engines struct{ redis, namespace, clickhouse string }

// ownEngines are those that the environment names, or else the tests' own; they
// hold nothing.
func ownEngines(t testing.TB) engines {
	t.Helper()
	redis, namespace := redisNamespace(t)
	return engines{redis, namespace, clickhouseserver.DSN(t)}
}

// configure writes the configuration of a process on the engines.
func (on engines) configure(t testing.TB, path, nats string, settings ...string) {
	t.Helper()
	lines := append([]string{
		"memory: " + on.redis, "redis:", "  namespace: " + on.namespace, "audit: " + on.clickhouse,
		"nats:", "  url: " + nats, "  replicas: " + strconv.Itoa(1+strings.Count(nats, ",")), "http:", "  listen: 127.0.0.1:0",
	}, settings...)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startClusterOn is startCluster on engines of the test's choice.
func startClusterOn(t testing.TB, on engines, replicas int, settings ...string) *cluster {
	t.Helper()
	return startClusterOver(t, []*natsServer{startNATS(t)}, on, replicas, settings...)
}

// startClusterOver is startClusterOn over brokers of the test's choice, each of
// which has all streams.
func startClusterOver(t testing.TB, brokers []*natsServer, on engines, replicas int, settings ...string) *cluster {
	t.Helper()
	c := &cluster{
		nats: brokers[0], brokers: brokers, clickhouse: on.clickhouse, config: filepath.Join(t.TempDir(), "palimpsest.yaml"),
	}
	on.configure(t, c.config, urls(brokers), settings...)
	for range replicas {
		for _, service := range services {
			c.members = append(c.members, &member{t: t, config: c.config, service: service})
		}
	}
	c.begin(t, urls(brokers))
	return c
}

// begin launches all members, and connects to the first that can be asked.
func (c *cluster) begin(t testing.TB, nats string) {
	t.Helper()
	t.Cleanup(func() {
		for _, m := range c.members {
			m.kill()
			if t.Failed() {
				t.Logf("%s said:\n%s", m.service, m.stderr)
			}
		}
	})
	c.together((*member).launch)
	c.instance = &instance{t: t, HTTP: c.of("query")[0].http, NATS: nats}
	if err := c.connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.conn.Close)
}

// doors are instances, each at another replica of query.
func (c *cluster) doors() (all []*instance) {
	for _, m := range c.of("query") {
		all = append(all, &instance{t: c.t, HTTP: m.http, NATS: c.NATS})
	}
	return all
}

// together does to all members at once.
func (c *cluster) together(do func(*member) error) {
	var wait sync.WaitGroup
	errs := make([]error, len(c.members))
	for n, m := range c.members {
		wait.Go(func() { errs[n] = do(m) })
	}
	wait.Wait()
	for n, err := range errs {
		if err != nil {
			c.members[n].t.Fatalf("%s: %v:\n%s", c.members[n].service, err, c.members[n].stderr)
		}
	}
}

// of are the replicas of a service.
func (c *cluster) of(service string) (found []*member) {
	for _, m := range c.members {
		if m.service == service {
			found = append(found, m)
		}
	}
	return found
}

// set changes a line of the configuration for those that start afterwards.
func (c *cluster) set(line, into string) {
	c.t.Helper()
	text, err := os.ReadFile(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(c.config, []byte(strings.Replace(string(text), line, into, 1)), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// wantAsOne compares the stored data with that of one undisturbed process that
// received the same messages.
func (c *cluster) wantAsOne(disturbed, calm []*script, said int) {
	c.t.Helper()
	quiet := start(c.t, c.t.TempDir())
	quiet.tellAll(calm, 0, nil)
	quiet.settled(everything("default"), said)
	for _, s := range disturbed {
		wantSaid(c.t, c.instance, s)
	}
	if diff := cmp.Diff(exported(c.t, quiet.instance), exported(c.t, c.instance)); diff != "" {
		c.t.Errorf("what is known (-one process +cluster):\n%s", diff)
	}
	wantAuditRows(c.t, c.instance, c.clickhouse)
	if letters := c.buried(0); len(letters) > 0 {
		c.t.Errorf("dead letters: %+v", letters)
	}
}

// through selects another replica of query.
func (c *cluster) through(m *member) {
	c.t.Helper()
	c.conn.Close()
	c.HTTP = m.http
	if err := c.connect(); err != nil {
		c.t.Fatal(err)
	}
}

// member is one process of a cluster.
type member struct {
	t       testing.TB
	config  string
	service string

	mu      sync.Mutex
	process *exec.Cmd
	done    chan error
	stderr  *tail
	http    string
}

// launch starts the process and returns once it is ready.
func (m *member) launch() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stderr == nil {
		m.stderr = &tail{}
	}
	m.process = exec.Command(program, "--config", m.config, m.service, "--http", "127.0.0.1:0")
	m.process.Stderr = m.stderr
	tie(m.process)
	out, err := m.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.process.Start(); err != nil {
		m.process = nil
		return err
	}
	said := map[string]string{}
	if err = await(out, said, "HTTP"); err != nil {
		_ = m.process.Process.Kill()
	}
	m.http = said["HTTP"]
	process, done := m.process, make(chan error, 1)
	m.done = done
	go func() { done <- process.Wait() }()
	return err
}

// kill ends the process at once, if it runs.
func (m *member) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill()
	<-m.done
	m.process = nil
}

// stop asks the process to end and returns how long that took; it must end well.
func (m *member) stop() (took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	began := time.Now()
	if err := m.process.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	select {
	case err = <-m.done:
		m.process = nil
		return time.Since(began), err
	case <-time.After(startLimit):
		return 0, fmt.Errorf("%s did not drain within %v", m.service, startLimit)
	}
}
