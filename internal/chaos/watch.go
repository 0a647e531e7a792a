package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// askLimit bounds one question to the process.
const askLimit = 10 * time.Second

// watch asks one life of the process how far it is.
type watch struct {
	api     *client.Client
	conn    *nats.Conn
	js      jetstream.JetStream
	waiting string // what is yet to be done, when last asked
}

func newWatch(ctx context.Context, http, data string) (*watch, error) {
	w := &watch{}
	var err error
	if w.api, err = client.New(http, client.Project(scope.DefaultProject)); err != nil {
		return nil, err
	}
	to, err := broker.Endpoint(filepath.Join(data, "nats"))
	if err != nil {
		return nil, err
	}
	to.Name = "chaos"
	if w.conn, err = broker.Connect(ctx, to); err != nil {
		return nil, err
	}
	w.js, err = jetstream.New(w.conn)
	return w, err
}

func (w *watch) close() { w.conn.Close() }

func (w *watch) ledger(ctx context.Context) (api.Ledger, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return w.api.Ledger(ctx, scope.Selector{Project: scope.DefaultProject}, false)
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
			w.waiting = fmt.Sprintf("ledger: %+v", t)
			return false, nil
		}
		settled++
	}
	if settled < len(rules) {
		w.waiting = fmt.Sprintf("ledger: %+v", ledger.Totals)
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	for _, stream := range broker.Topology(broker.TopologyConfig{}).Streams {
		for _, c := range stream.Consumers {
			consumer, err := w.js.Consumer(ctx, stream.Config.Name, c.Durable)
			if err != nil {
				return false, fmt.Errorf("look at consumer %s: %w", c.Durable, err)
			}
			if info := consumer.CachedInfo(); info.NumPending > 0 || info.NumAckPending > 0 {
				w.waiting = fmt.Sprintf("consumer %s: %d to read, %d to acknowledge", c.Durable, info.NumPending, info.NumAckPending)
				return false, nil
			}
		}
	}
	return true, nil
}
