package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startGuarded runs that many replicas of each service as in a deployment: on a
// NATS server with the accounts of deploy/nats, where each service has its own
// account and permissions, and publishers may publish only. At the end the server
// must have refused nothing.
func startGuarded(t *testing.T, replicas int) *cluster {
	t.Helper()
	on := ownEngines(t)
	c := &cluster{nats: startGuardedNATS(t), clickhouse: on.clickhouse}
	apply := exec.CommandContext(t.Context(), program, "topology", "apply") // by the operator
	apply.Env = append(os.Environ(), "NATS_URL="+c.as("operator"))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("apply the topology: %v\n%s", err, out)
	}
	dir := t.TempDir()
	for _, service := range services {
		config := filepath.Join(dir, service+".yaml")
		on.configure(t, config, c.as(service))
		for range replicas {
			c.members = append(c.members, &member{t: t, config: config, service: service})
		}
	}
	c.begin(t, c.as("publisher"))
	t.Cleanup(c.wantPermitted)
	return c
}

// startGuardedNATS runs a server with the accounts of deploy/nats.
func startGuardedNATS(t *testing.T) *natsServer {
	t.Helper()
	accounts := filepath.Join("..", "..", "deploy", "nats")
	server := &natsServer{t: t, dir: t.TempDir(), port: "-1", guards: "accounts.conf"}
	for _, name := range []string{"accounts.conf", "permissions.conf"} { // it includes what lies below it only
		text, err := os.ReadFile(filepath.Join(accounts, name))
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
	server.run()
	return server
}

// as is the server's address for a user.
func (c *cluster) as(user string) string {
	return fmt.Sprintf("nats://%s:secret-%s@127.0.0.1:%s", user, user, c.nats.port)
}

// wantPermitted starts all processes again, because a consolidator that starts
// reads AUDIT and an ingest what was handed out, and wants that the server refused
// none of them anything since it runs.
func (c *cluster) wantPermitted() {
	c.together(func(m *member) error {
		_, err := m.stop()
		return err
	})
	c.together((*member).launch)
	c.nats.mu.Lock()
	defer c.nats.mu.Unlock()
	for _, line := range c.nats.refused {
		c.members[0].t.Errorf("refused: %s", line)
	}
}
