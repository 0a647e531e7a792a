package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/topology"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// askLimit bounds one question to a process.
const askLimit = 10 * time.Second

// watch asks how far the processes are, for as long as their broker lives.
type watch struct {
	conn *nats.Conn
	js   jetstream.JetStream

	mu      sync.Mutex
	waiting string // pending work at the last look
}

func newWatch(ctx context.Context, to broker.ConnectConfig) (*watch, error) {
	w := &watch{}
	var err error
	if w.conn, err = broker.Connect(ctx, to); err != nil {
		return nil, err
	}
	w.js, err = broker.NewJetStream(w.conn)
	return w, err
}

func (w *watch) close() { w.conn.Close() }

// wait notes what is yet to be done.
func (w *watch) wait(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = fmt.Sprintf(format, args...)
}

func (w *watch) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting
}

// errNobody: no process can be asked, while all of them start.
var errNobody = errors.New("no process answers")

// ask is a client of the process that answers at an address.
func ask(http string) (*client.Client, error) {
	if http == "" {
		return nil, errNobody
	}
	return client.New(http, client.Project(scope.DefaultProject))
}

// ledger asks the process that answers at an address.
func (w *watch) ledger(ctx context.Context, http string) (api.Ledger, error) {
	asked, err := ask(http)
	if err != nil {
		return api.Ledger{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return asked.Ledger(ctx, scope.Selector{Project: scope.DefaultProject, All: true}, false)
}

// audited reports whether the audit log has every effect of AUDIT. No consumer shows
// that: its reader keeps a cursor.
func (w *watch) audited(ctx context.Context, http string) (bool, error) {
	asked, err := ask(http)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	stream, err := w.js.Stream(ctx, topology.StreamAudit)
	if err != nil {
		return false, fmt.Errorf("look at stream %s: %w", topology.StreamAudit, err)
	}
	ready, err := asked.Ready(ctx)
	if err != nil {
		return false, err
	}
	logged, end := ready.Checks["audit"].Details[api.DetailSequence], stream.CachedInfo().State.LastSeq
	if logged != float64(end) { // JSON has no other number
		w.wait("audit log: %v of %d effects", logged, end)
		return false, nil
	}
	return true, nil
}

// quiet reports whether every episode is consolidated by every rule, and nothing
// is under way anywhere: no message that a service has yet to read or to
// acknowledge.
func (w *watch) quiet(ctx context.Context, ledger api.Ledger, rules []string, episodes int) (bool, error) {
	settled := 0
	for _, t := range ledger.Totals {
		if !slices.Contains(rules, t.Rule) {
			continue
		}
		if t.Pending > 0 || t.Accepted < uint64(episodes) {
			w.wait("ledger: %+v", t)
			return false, nil
		}
		settled++
	}
	if settled < len(rules) {
		w.wait("ledger: %+v", ledger.Totals)
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	for _, stream := range topology.Declare(topology.Config{}).Streams {
		for _, c := range stream.Consumers {
			consumer, err := w.js.Consumer(ctx, stream.Config.Name, c.Durable)
			if err != nil {
				return false, fmt.Errorf("look at consumer %s: %w", c.Durable, err)
			}
			if info := consumer.CachedInfo(); info.NumPending > 0 || info.NumAckPending > 0 {
				w.wait("consumer %s: %d to read, %d to acknowledge", c.Durable, info.NumPending, info.NumAckPending)
				return false, nil
			}
		}
	}
	return true, nil
}
