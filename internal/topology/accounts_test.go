package topology_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestDeployedAccountsAreThePrinted(t *testing.T) {
	t.Parallel()
	want, err := declared.AccountsText()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(deployed, "accounts.conf")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("%s is not what is printed (-update writes it): %v", path, err)
	}
}

// TestP6PublishersKeepToTheirProject: on a real server, the publisher of a project
// publishes its episodes and hears of its own letters, and of nothing else.
func TestP6PublishersKeepToTheirProject(t *testing.T) { //nolint:paralleltest // the server reads the environment
	for _, name := range []string{"INGEST", "SCHEDULER", "EXTRACTOR", "DECIDER", "CONSOLIDATOR", "QUERY", "OPERATOR", "PUBLISHER", "PUBLISHER_ACME", "PUBLISHER_BETA_1"} {
		t.Setenv("NATS_PASSWORD_"+name, map[string]string{
			"OPERATOR": "operator-secret", "PUBLISHER_ACME": "publisher_acme-secret", "PUBLISHER_BETA_1": "publisher_beta_1-secret",
		}[name])
	}
	dir := t.TempDir()
	if err := declared.WriteServer(dir, "acme", "Beta/1"); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(filepath.Join(dir, "accounts.conf"))
	if err != nil {
		t.Fatal(err)
	}
	opts.Host, opts.Port, opts.StoreDir, opts.JetStream, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, t.TempDir(), true, true, true
	g := &guarded{url: brokertest.Serve(t, opts).Addr().String()}
	operator := g.as(t, "operator")
	if err := topology.Apply(bounded(t), operator.js, declared); err != nil {
		t.Fatal(err)
	}
	of := map[string]scope.Scope{
		"publisher_acme": {Project: "acme", User: "nora"}, "publisher_beta_1": {Project: "Beta/1", User: "nora"},
	}
	for name, own := range of {
		u := g.as(t, name)
		ack, err := u.js.Publish(bounded(t), "palimpsest.episodes."+own.Tokens(), []byte("hello"))
		if err != nil || ack.Stream != topology.StreamEpisodes {
			t.Errorf("%s publishes: %+v, %v", name, ack, err)
		}
		for other, theirs := range of {
			subject := "palimpsest.episodes." + theirs.Tokens()
			if may := u.maySay(t, subject); may != (other == name) {
				t.Errorf("%s may publish %s: %v", name, subject, may)
			}
			letter := events.DeadLetterSubject("ingest", theirs)
			if may := u.mayHear(t, letter); may != (other == name) {
				t.Errorf("%s may hear %s: %v", name, letter, may)
			}
			if u.maySay(t, letter) {
				t.Errorf("%s may bury", name)
			}
		}
		keepsOut(t, u, own)
		heard(t, u, operator, own)
	}
}

// keepsOut checks that a publisher reaches nothing of the pipeline: it can neither
// publish there nor read a stream or a subject.
func keepsOut(t *testing.T, u *user, own scope.Scope) {
	t.Helper()
	tokens := own.Tokens()
	for _, subject := range []string{
		"palimpsest.episodes.other.u._._", "palimpsest.episodes", "palimpsest.audit." + tokens, "palimpsest.commands." + tokens, "palimpsest.deltas." + tokens,
		"palimpsest.stored." + tokens, "palimpsest.ticks.rules." + tokens, "$JS.API.STREAM.DELETE.EPISODES", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.AUDIT",
		"$JS.API.STREAM.MSG.GET.AUDIT", "$JS.API.DIRECT.GET.AUDIT", "$JS.API.CONSUMER.CREATE.AUDIT", "$JS.API.CONSUMER.CREATE.EPISODES.x",
		"$JS.API.CONSUMER.MSG.NEXT.DELTAS.consolidator-deltas-rules", "$KV.KEYS.key.x", "$SYS.REQ.ACCOUNT.PING.CONNZ",
	} {
		if u.maySay(t, subject) {
			t.Errorf("%s may publish %s", u.name, subject)
		}
	}
	for _, subject := range []string{
		">", "palimpsest.>", "palimpsest.audit.>", "palimpsest.episodes.>", "palimpsest.episodes." + tokens, "palimpsest.deltas.>", "palimpsest.outcomes.>",
		"palimpsest.deadletter.>", "$JS.>", "$KV.KEYS.>", "$SYS.>",
	} {
		if u.mayHear(t, subject) {
			t.Errorf("%s may subscribe to %s", u.name, subject)
		}
	}
	for _, stream := range []string{topology.StreamAudit, topology.StreamEpisodes, topology.StreamDeadLetter} {
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond) // the server does not answer
		if s, err := u.js.Stream(ctx, stream); err == nil {
			t.Errorf("%s reads %s: %+v", u.name, stream, s.CachedInfo())
		}
		stop()
	}
}

// heard has the letter of a publisher arrive there.
func heard(t *testing.T, u, operator *user, own scope.Scope) {
	t.Helper()
	sub, err := u.conn.SubscribeSync(events.DeadLetterSubject("ingest", own))
	if err == nil {
		err = u.conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	publish(t, operator.js, events.DeadLetterSubject("ingest", own), "refused")
	m, err := sub.NextMsg(10 * time.Second)
	if err != nil || string(m.Data) != "refused" {
		t.Errorf("%s hears %v, %v", u.name, m, err)
	}
	if _, err := sub.NextMsg(time.Millisecond); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("%s hears more: %v", u.name, err)
	}
}

func TestPublishersThatWouldShareAName(t *testing.T) {
	t.Parallel()
	for _, projects := range [][]string{{"a-b", "a_b"}, {"a", "A"}, {""}, {"a\x00"}} {
		if text, err := declared.AccountsText(projects...); err == nil {
			t.Errorf("%q: %s", projects, text)
		}
	}
}
