package e2e

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// patience bounds everything that must come about in the end. It is generous: the
// machine may be busy.
const patience = 3 * time.Minute

// instance is a running Palimpsest as its users meet it: where it is, and as whose
// tenant they speak to it. Nothing of it tells in which shape it runs.
type instance struct {
	t      testing.TB
	tenant string // the default one unless it is named

	HTTP, NATS string
	api        *client.Client // the tenant's
	conn       *nats.Conn
	js         jetstream.JetStream
}

func (i *instance) connect() error {
	var err error
	if i.api, err = client.New(i.HTTP, client.Project(i.tenant)); err != nil {
		return err
	}
	if i.conn, err = nats.Connect(i.NATS); err != nil {
		return err
	}
	i.js, err = jetstream.New(i.conn)
	return err
}

// as is the instance as a test meets it that has a tenant of its own.
func (i *instance) as(t testing.TB, tenant string) *instance {
	t.Helper()
	own := &instance{t: t, tenant: tenant, HTTP: i.HTTP, NATS: i.NATS}
	if err := own.connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.conn.Close)
	return own
}

// in is the instance for a part of a test.
func (i *instance) in(t testing.TB) *instance {
	on := *i
	on.t = t
	return &on
}

// person is one of the tenant's users.
func (i *instance) person(user string) scope.Scope {
	who := person(user)
	who.Project = i.whole().Project
	return who
}

// whole selects all that is the tenant's.
func (i *instance) whole() scope.Selector {
	if i.tenant == "" {
		return everything(scope.DefaultProject)
	}
	return everything(i.tenant)
}

// eventually polls until check returns nil, and fails with its last error.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	limit := time.Now().Add(patience)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
		time.Sleep(pause) //nolint:forbidigo // paces a poll of another process
	}
}
