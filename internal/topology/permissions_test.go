package topology_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var update = flag.Bool("update", false, "rewrite the files that are made from the topology")

// deployed is where the configuration of a server of others lies.
var deployed = filepath.Join("..", "..", "deploy", "nats")

func TestDeployedPermissionsAreTheArrows(t *testing.T) {
	t.Parallel()
	want := topology.ServerText(declared.ServicePermissions())
	path := filepath.Join(deployed, "permissions.conf")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("%s is not what the topology says (-update writes it): %v", path, err)
	}
}

// Each durable consumer has exactly one service that may read it.
func TestEveryConsumerHasItsService(t *testing.T) {
	t.Parallel()
	all := declared.ServicePermissions()
	for _, s := range declared.Streams {
		for _, c := range s.Consumers {
			var readers []string
			next := "$JS.API.CONSUMER.MSG.NEXT." + s.Config.Name + "." + c.Durable
			for service, p := range all {
				if slices.Contains(p.Publish, next) {
					readers = append(readers, service)
				}
			}
			if len(readers) != 1 || !strings.HasPrefix(c.Durable, readers[0]+"-") {
				t.Errorf("%s is read by %v", c.Durable, readers)
			}
		}
	}
}

// guarded is a server that runs what is deployed.
type guarded struct{ url string }

// startGuarded runs a server with the deployed configuration, the storage
// directory and the ports apart, and the topology applied by its operator.
func startGuarded(t *testing.T) *guarded {
	t.Helper()
	for _, user := range append(slices.Sorted(maps.Keys(declared.ServicePermissions())), "operator", "publisher") {
		t.Setenv("NATS_PASSWORD_"+strings.ToUpper(user), user+"-secret")
	}
	opts, err := server.ProcessConfigFile(filepath.Join(deployed, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	opts.Host, opts.Port, opts.HTTPPort, opts.StoreDir = "127.0.0.1", server.RANDOM_PORT, 0, t.TempDir()
	opts.NoLog, opts.NoSigs = true, true
	srv := brokertest.Serve(t, opts)
	g := &guarded{url: srv.Addr().String()}
	if err := topology.Apply(bounded(t), g.as(t, "operator").js, declared); err != nil {
		t.Fatal(err)
	}
	return g
}

// user is a connection of one.
type user struct {
	name string
	conn *nats.Conn
	js   jetstream.JetStream
}

func (g *guarded) as(t *testing.T, name string) *user {
	t.Helper()
	u := &user{name: name}
	var err error
	u.conn, err = broker.Connect(bounded(t), broker.ConnectConfig{
		URL: fmt.Sprintf("nats://%s:%s-secret@%s", name, name, g.url), Name: name,
	})
	if err != nil {
		t.Fatalf("connect as %s: %v", name, err)
	}
	t.Cleanup(u.conn.Close)
	if u.js, err = jetstream.New(u.conn); err != nil {
		t.Fatal(err)
	}
	return u
}

// may reports whether the server lets the user do what it does; its refusal
// comes before its answer to a flush.
func (u *user) may(t *testing.T, do func() error) bool {
	t.Helper()
	before := u.conn.LastError()
	if err := errors.Join(do(), u.conn.Flush()); err != nil {
		t.Fatalf("%s: %v", u.name, err)
	}
	after := u.conn.LastError()
	if after == before { //nolint:errorlint // is it the very same?
		return true
	}
	if !errors.Is(after, nats.ErrPermissionViolation) {
		t.Fatalf("%s: %v", u.name, after)
	}
	return false
}

func (u *user) maySay(t *testing.T, subject string) bool {
	t.Helper()
	return u.may(t, func() error { return u.conn.Publish(subject, nil) })
}

func (u *user) mayHear(t *testing.T, subject string) bool {
	t.Helper()
	return u.may(t, func() error {
		sub, err := u.conn.SubscribeSync(subject)
		if err != nil {
			return err
		}
		return errors.Join(u.conn.Flush(), sub.Unsubscribe())
	})
}

// makes are the nouns that each service publishes. Those of the work queues that it
// reads are among them: a failing message goes back as a copy.
var makes = map[string][]string{
	"ingest":    {events.NounStored},
	"scheduler": {events.NounStored, events.NounTicks, events.NounCommands, events.NounEpisodes},
	"extractor": {events.NounTicks, events.NounCandidates},
	"decider":   {events.NounCandidates, events.NounCommands, events.NounDeltas},
	"consolidator": {
		events.NounDeltas, events.NounAccess, events.NounAudit, events.NounCandidates, events.NounCommands, events.NounOutcomes,
	},
	"query": {
		events.NounEpisodes, events.NounCommands, events.NounAccess, events.NounStored, events.NounTicks, events.NounCandidates, events.NounDeltas,
	},
	"publisher": {events.NounEpisodes},
}

var nora = scope.Scope{Project: "default", User: "nora"}

// TestServicesKeepToTheirArrows asks the server about everything that a service
// has no business with.
func TestServicesKeepToTheirArrows(t *testing.T) { //nolint:paralleltest // the server reads the environment
	g := startGuarded(t)
	nouns := []string{
		events.NounEpisodes, events.NounStored, events.NounTicks, events.NounCandidates, events.NounDeltas, events.NounCommands,
		events.NounAudit, events.NounAccess, events.NounOutcomes,
	}
	for name, own := range makes {
		u := g.as(t, name)
		for _, noun := range nouns {
			subject := "palimpsest." + noun + "." + nora.Tokens()
			if may, want := u.maySay(t, subject), slices.Contains(own, noun); may != want {
				t.Errorf("%s may publish %s: %v", name, subject, may)
			}
		}
		for other := range makes {
			letter := events.DeadLetterSubject(other, nora)
			if may, want := u.maySay(t, letter), other == name && name != "query" && name != "publisher"; may != want {
				t.Errorf("%s may bury as %s: %v", name, other, may)
			}
			if may, want := u.mayHear(t, "_INBOX."+other+".>"), other == name || name == "publisher"; may != want {
				t.Errorf("%s may hear the replies to %s: %v", name, other, may)
			}
		}
		for _, subject := range []string{">", "palimpsest.>", "palimpsest.audit.>", "palimpsest.episodes.>", "$JS.>", "_INBOX.>", "$SYS.>"} {
			if u.mayHear(t, subject) && (name != "publisher" || subject != "_INBOX.>") {
				t.Errorf("%s may hear %s", name, subject)
			}
		}
		for _, stream := range declared.Streams {
			for _, subject := range []string{"CREATE", "UPDATE", "DELETE", "PURGE", "MSG.DELETE", "SNAPSHOT", "RESTORE", "LEADER.STEPDOWN"} {
				if subject == "MSG.DELETE" && stream.Config.Name == topology.StreamDeadLetter && name == "query" ||
					subject == "MSG.DELETE" && stream.Config.Name == topology.StreamEpisodes && name == "ingest" {
					continue
				}
				if u.maySay(t, "$JS.API.STREAM."+subject+"."+stream.Config.Name) {
					t.Errorf("%s may ask for %s of %s", name, subject, stream.Config.Name)
				}
			}
			for _, c := range stream.Consumers {
				mine := strings.HasPrefix(c.Durable, name+"-")
				at := "." + stream.Config.Name + "." + c.Durable
				if may := u.maySay(t, "$JS.API.CONSUMER.MSG.NEXT"+at); may != mine {
					t.Errorf("%s may fetch from %s: %v", name, c.Durable, may)
				}
				if may := u.maySay(t, "$JS.ACK"+at+".1.1.1.1.1"); may != mine {
					t.Errorf("%s may acknowledge for %s: %v", name, c.Durable, may)
				}
				for _, subject := range []string{"CREATE" + at, "CREATE" + at + "." + c.FilterSubject, "DURABLE.CREATE" + at, "DELETE" + at, "PAUSE" + at} {
					if u.maySay(t, "$JS.API.CONSUMER."+subject) {
						t.Errorf("%s may ask for %s", name, subject)
					}
				}
			}
		}
	}
}

// TestStrangersAreNotLetIn: there is no user without a password.
func TestStrangersAreNotLetIn(t *testing.T) { //nolint:paralleltest // the server reads the environment
	g := startGuarded(t)
	for _, url := range []string{"nats://" + g.url, "nats://query:wrong@" + g.url} {
		if conn, err := nats.Connect(url); !errors.Is(err, nats.ErrAuthorization) {
			conn.Close()
			t.Errorf("%s: %v", url, err)
		}
	}
}
