package auth_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/auth"
	"palimpsest/internal/auth/bucket"
	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

// TestP6QueryReadsKeysAndMakesNone: with the permissions of deploy/nats, the service
// follows the bucket and writes the use of keys; a key is made by the operator alone.
func TestP6QueryReadsKeysAndMakesNone(t *testing.T) { //nolint:paralleltest // the server reads the environment
	for _, user := range []string{"ingest", "scheduler", "extractor", "decider", "consolidator", "query", "operator", "publisher"} {
		t.Setenv("NATS_PASSWORD_"+strings.ToUpper(user), user+"-secret")
	}
	opts, err := server.ProcessConfigFile(filepath.Join("..", "..", "deploy", "nats", "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	opts.Host, opts.Port, opts.HTTPPort, opts.StoreDir, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, 0, t.TempDir(), true, true
	address := brokertest.Serve(t, opts).Addr().String()
	as := func(user string) (*nats.Conn, jetstream.JetStream) {
		t.Helper()
		to := url.URL{Scheme: "nats", User: url.UserPassword(user, user+"-secret"), Host: address}
		conn, err := broker.Connect(t.Context(), broker.ConnectConfig{URL: to.String(), Name: user})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		js, err := broker.NewJetStream(conn)
		if err != nil {
			t.Fatal(err)
		}
		return conn, js
	}
	_, operator := as("operator")
	if err := topology.Apply(t.Context(), operator, topology.Declare(topology.Config{})); err != nil {
		t.Fatal(err)
	}
	conn, query := as("query")
	r := &rig{js: query, keys: auth.NewKeys(bucket.New(operator), time.Now), now: time.Now}
	stop := r.follow(t, auth.Limits{})
	key, token := r.create(t, writer)
	if _, err := r.keys.Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	r.until(t, token, auth.ErrRevoked)
	stop()
	all, err := r.keys.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Use.Total == 0 {
		t.Errorf("the use is not written: %+v, %v", all, err)
	}
	if err := conn.LastError(); err != nil {
		t.Errorf("the server refused the service: %v", err)
	}
	if err := errors.Join(conn.Publish(topology.SubjectKeys+"key."+key.ID, []byte("{}")), conn.Flush()); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(conn.LastError(), nats.ErrPermissionViolation) {
		t.Errorf("the service may write keys: %v", conn.LastError())
	}
}
