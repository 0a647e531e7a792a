package broker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

// violation runs do on a connection without a credential and returns the
// server's complaint; it fails the test if there is none.
func violation(t *testing.T, env *brokertest.Env, do func(conn *nats.Conn) error) error {
	t.Helper()
	complaints := make(chan error, 16)
	conn := env.Anonymous(t, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { complaints <- err }))
	if err := do(conn); err != nil {
		return err
	}
	if err := conn.FlushWithContext(bounded(t)); err != nil {
		return err
	}
	select {
	case err := <-complaints:
		return err
	case <-time.After(10 * time.Second):
		return nil
	}
}

func TestAnonymousPublishesEpisodes(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	conn := env.Anonymous(t)

	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ack := publish(t, js, episodes, "through JetStream")
	if ack.Stream != topology.StreamEpisodes || ack.Sequence != 1 {
		t.Errorf("acknowledged as %+v", ack)
	}
	reply, err := conn.RequestWithContext(bounded(t), episodes, []byte("through a request"))
	if err != nil || !strings.Contains(string(reply.Data), topology.StreamEpisodes) {
		t.Errorf("request: %v", err)
	}
	if err := conn.Publish(episodes, []byte("without waiting")); err != nil {
		t.Error(err)
	}
	if err := conn.FlushWithContext(bounded(t)); err != nil {
		t.Error(err)
	}
	stream, err := env.JS.Stream(bounded(t), topology.StreamEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 3 {
		t.Errorf("%d episodes, want 3", n)
	}
	msg, err := stream.GetMsg(bounded(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if string(msg.Data) != "through JetStream" || !strings.HasSuffix(msg.Subject, ".default.alice._._") {
		t.Errorf("stored %q under %s", msg.Data, msg.Subject)
	}
	// A subject with another number of tokens has no stream.
	if _, err := conn.RequestWithContext(bounded(t), "palimpsest.episodes.default", nil); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("incomplete subject: %v", err)
	}
}

func TestAnonymousDoesNothingElse(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	for _, subject := range []string{
		"palimpsest.audit.default.alice._._", "palimpsest.commands.default.alice._._", "palimpsest.ticks.default.alice._._",
		"palimpsest.deadletter.ingest.default.alice._._", "palimpsest.outcomes.x", "palimpsest.incognito.default.alice._._",
		"palimpsest.trials.ingest-00.EPISODES.1", "$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.DELETE.AUDIT", "$JS.API.STREAM.MSG.GET.AUDIT",
		"$JS.API.DIRECT.GET.EPISODES", "$SYS.REQ.SERVER.PING", "$SYS.REQ.USER.INFO", "_INBOX.someone", "anything",
	} {
		t.Run("publish "+subject, func(t *testing.T) {
			t.Parallel()
			err := violation(t, env, func(conn *nats.Conn) error { return conn.Publish(subject, nil) })
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, subject := range []string{">", "*.>", "palimpsest.>", "palimpsest.episodes.>", "palimpsest.audit.>", "$SYS.>", "$JS.>", "_INBOX_", "_R_.>"} {
		t.Run("subscribe "+subject, func(t *testing.T) {
			t.Parallel()
			err := violation(t, env, func(conn *nats.Conn) error {
				_, err := conn.SubscribeSync(subject)
				return err
			})
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A client names where the acknowledgement goes. It must not go into a stream,
// or to the API.
func TestAnonymousReplyStaysOutside(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	conn := env.Anonymous(t)
	for _, reply := range []string{
		"palimpsest.audit.default.alice._._", "palimpsest.commands.default.alice._._",
		"$JS.API.STREAM.PURGE.EPISODES", "$JS.API.STREAM.DELETE.EPISODES", "palimpsest.outcomes.x",
	} {
		if err := conn.PublishRequest(episodes, reply, []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	// A later message of the same connection is handled after all of them.
	if _, err := conn.RequestWithContext(bounded(t), episodes, []byte("last")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{topology.StreamEpisodes: 6, topology.StreamAudit: 0, topology.StreamCommands: 0} {
		stream, err := env.JS.Stream(bounded(t), name)
		if err != nil {
			t.Fatal(err)
		}
		if n := stream.CachedInfo().State.Msgs; n != want {
			t.Errorf("%s holds %d messages, want %d", name, n, want)
		}
	}
}

// A reply subject that the server itself reads is refused with its message: what
// is written there would count as the acknowledgement of a reader, or as the
// answer to another's request.
func TestAnonymousNamesNoReplyOfTheServers(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	for _, reply := range []string{"$JS.ACK.EPISODES.ingest-00.1.1.1.1767225600000000000.0", "_R_.aaaaaa.bbbbbb", "_GR_.aaaaaa.bbbbbb.x"} {
		t.Run(reply, func(t *testing.T) {
			t.Parallel()
			err := violation(t, env, func(conn *nats.Conn) error { return conn.PublishRequest(episodes, reply, []byte("hello")) })
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Headers may ask the server for more than to keep a message: to report its way
// to a subject, to remove others, to expect a state, to go in a batch.
func TestAnonymousHeadersReachNothingElse(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	publish(t, env.JS, episodes, "said before")
	conn := env.Anonymous(t)
	const elsewhere = "palimpsest.audit.default.alice._._"
	for _, header := range []nats.Header{
		{"Nats-Trace-Dest": {elsewhere}},
		{"Nats-Trace-Dest": {elsewhere}, "Nats-Trace-Only": {"true"}},
		{"traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Nats-Trace-Dest": {"$JS.API.STREAM.DELETE.AUDIT"}},
		{"Nats-Rollup": {"all"}},
		{"Nats-Rollup": {"sub"}},
		{"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
		{"Nats-Request-Info": {`{"acc":"PALIMPSEST","reply":"` + elsewhere + `"}`}},
		{"Nats-TTL": {"1s"}},
	} {
		if err := conn.PublishMsg(&nats.Msg{Subject: episodes, Header: header, Data: []byte("hello")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.RequestWithContext(bounded(t), episodes, []byte("last")); err != nil {
		t.Fatal(err)
	}
	stream, err := env.JS.Stream(bounded(t), topology.StreamEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	if first, err := stream.GetMsg(bounded(t), 1); err != nil || string(first.Data) != "said before" {
		t.Errorf("the first episode: %v", err)
	}
	audit, err := env.JS.Stream(bounded(t), topology.StreamAudit)
	if err != nil {
		t.Fatal(err)
	}
	if n := audit.CachedInfo().State.Msgs; n != 0 {
		t.Errorf("AUDIT holds %d messages", n)
	}
}

// An anonymous client may listen to every inbox of its account; those of the
// services are in another.
func TestAnonymousSeesNoAnswerToServices(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	conn := env.Anonymous(t)
	spy, err := conn.SubscribeSync("_INBOX.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.FlushWithContext(bounded(t)); err != nil {
		t.Fatal(err)
	}
	publish(t, env.JS, episodes, "from a service")
	// The spy's own episode is answered after everything before it.
	if err := conn.PublishRequest(episodes, "_INBOX.own", nil); err != nil {
		t.Fatal(err)
	}
	msg, err := spy.NextMsgWithContext(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if msg.Subject != "_INBOX.own" {
		t.Errorf("saw %s: %s", msg.Subject, msg.Data)
	}
}

func TestWrongCredentialIsRefused(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	for name, option := range map[string]nats.Option{
		"password": nats.UserInfo("palimpsest", "guess"),
		"token":    nats.Token("guess"),
	} {
		if conn, err := nats.Connect(env.URL, option); err == nil {
			conn.Close()
			t.Errorf("%s: let in", name)
		}
	}
	elsewhere := brokertest.Start(t)
	cfg, err := broker.Endpoint(elsewhere.Dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg.URL = env.URL
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if conn, err := broker.Connect(ctx, cfg); err == nil {
		conn.Close()
		t.Error("another broker's credential: let in")
	} else if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("the error does not say why: %v", err)
	}
}

// Beyond the loopback no client connects without a credential.
func TestNoAnonymousOverTheNetwork(t *testing.T) {
	t.Parallel()
	env := brokertest.StartWith(t, broker.EmbeddedConfig{Host: "0.0.0.0"})
	if conn, err := nats.Connect(env.URL); err == nil {
		conn.Close()
		t.Error("let in")
	}
	if err := env.Connect(t).FlushWithContext(bounded(t)); err != nil {
		t.Error(err)
	}
}
