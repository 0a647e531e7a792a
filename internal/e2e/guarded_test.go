package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/clickhousetest"
	"palimpsest/pkg/api"
)

// startGuarded runs one process of each service on a NATS server that has the
// accounts of deploy/nats: each logs in as itself, and may do no more than its
// permissions say. The topology is applied by its operator, as it is deployed.
func startGuarded(t *testing.T) *cluster {
	t.Helper()
	redis, namespace := redisNamespace(t)
	dsn := clickhousetest.DSN(t)
	accounts, err := filepath.Abs(filepath.Join("..", "..", "deploy", "nats", "accounts.conf"))
	if err != nil {
		t.Fatal(err)
	}
	// A server includes what lies below it only.
	server := &natsServer{t: t, dir: t.TempDir(), port: "-1", guards: "accounts.conf"}
	for _, name := range []string{"accounts.conf", "permissions.conf"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(accounts), name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(server.dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range append([]string{"operator", "publisher"}, services...) {
		server.environ = append(server.environ, "NATS_PASSWORD_"+strings.ToUpper(user)+"=secret-"+user)
	}
	server.begin()
	t.Cleanup(server.kill)
	c := &cluster{nats: server, clickhouse: dsn}
	apply := exec.CommandContext(t.Context(), program, "topology", "apply")
	apply.Env = append(os.Environ(), "NATS_URL="+c.as("operator"))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("apply the topology: %v\n%s", err, out)
	}
	for _, service := range services {
		config := filepath.Join(t.TempDir(), service+".yaml")
		text := fmt.Sprintf("memory: %s\nredis:\n  namespace: %s\naudit: %s\nnats:\n  url: %s\n", redis, namespace, dsn, c.as(service))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := &member{t: t, config: config, service: service}
		c.members = append(c.members, m)
		t.Cleanup(m.kill)
	}
	c.together((*member).launch)
	c.instance = &instance{t: t, HTTP: c.of("query")[0].http, NATS: c.as("publisher")}
	if err := c.connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.conn.Close)
	return c
}

// as is the server's address for a user.
func (c *cluster) as(user string) string {
	return fmt.Sprintf("nats://%s:secret-%s@127.0.0.1:%s", user, user, c.nats.port)
}

// TestServicesWorkWithinTheirPermissions runs what makes every service do all that
// it ever does on the broker, and then looks whether the server refused any of it.
func TestServicesWorkWithinTheirPermissions(t *testing.T) {
	t.Parallel()
	c := startGuarded(t)
	out := c.cli("I live in Oslo.\nI like Python.\n", "publish", "--user", "ann", "--agent", "assistant", "--session", "s1", "--nats", c.NATS)
	if out != "2 published\n" {
		t.Errorf("publish says %q", out)
	}
	ann := of(person("ann"))
	ann.Session = nil
	c.settled(ann, 2)
	w, err := c.api.Record(t.Context(), api.Record{
		Scope: api.Scope{User: "ann", Agent: "assistant", Session: "s1"}, Messages: api.Messages{{Content: "I moved to Bergen."}}, Wait: true,
	}, "moved")
	if err != nil || len(w.Results) == 0 {
		t.Errorf("what was said over HTTP came to %+v, %v", w, err)
	}
	// A command, a search that leaves a trace, the end of the session.
	if _, err := c.api.Remember(t.Context(), api.Remember{Scope: api.Scope{User: "ann"}, Text: "Locker 7 is blue."}, "remember"); err != nil {
		t.Error(err)
	}
	user := "ann"
	if _, err := c.api.Search(t.Context(), api.Search{Selector: api.Selector{User: &user}, Text: "Where does she live?"}); err != nil {
		t.Error(err)
	}
	if _, err := c.api.EndSession(t.Context(), api.Scope{User: "ann", Agent: "assistant", Session: "s1"}, "explicit"); err != nil {
		t.Error(err)
	}
	if facts := c.factsWith(ann, "Bergen"); len(facts) != 1 {
		t.Errorf("known of Bergen is %+v", facts)
	} else if _, err := c.api.History(t.Context(), facts[0].ID); err != nil {
		t.Error(err)
	}
	if len(c.effects(ann)) == 0 {
		t.Error("AUDIT has nothing of what was said")
	}
	c.mends()
	// A consolidator that starts again reads AUDIT, an ingest what was handed out.
	for _, m := range c.members {
		if _, err := m.stop(); err != nil {
			t.Errorf("%s: %v", m.service, err)
		}
	}
	c.together((*member).launch)
	for _, m := range c.members {
		if said := m.stderr.String(); strings.Contains(strings.ToLower(said), strings.TrimPrefix(nats.ErrPermissionViolation.Error(), "nats: ")) {
			t.Errorf("%s was refused something:\n%s", m.service, said)
		}
	}
}
