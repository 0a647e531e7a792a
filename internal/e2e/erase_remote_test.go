package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"palimpsest/internal/failpoint"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// onNATS is a Palimpsest in one process on a NATS server of others.
func onNATS(t *testing.T) (*process, *natsServer) {
	t.Helper()
	n := startNATS(t)
	config := filepath.Join(t.TempDir(), "palimpsest.yaml")
	write(t, config, fmt.Appendf(nil, "nats: {url: %q}\n", n.url()))
	return prepare(t, t.TempDir(), "--config", config), n
}

// stop ends the server as an operator does: it writes the indexes of its streams.
func (n *natsServer) stop() {
	n.t.Helper()
	if err := n.process.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatal(err)
	}
	n.wait()
}

// drained waits until no queue holds a message.
func (i *process) drained() {
	i.t.Helper()
	eventually(i.t, "queues without messages", func() error {
		for _, name := range []string{
			topology.StreamStored, topology.StreamTicks, topology.StreamCandidates, topology.StreamDeltas,
			topology.StreamCommands, topology.StreamAccess,
		} {
			s, err := i.js.Stream(i.t.Context(), name)
			if err != nil {
				return err
			}
			if n := s.CachedInfo().State.Msgs; n > 0 {
				return fmt.Errorf("%s holds %d", name, n)
			}
		}
		return nil
	})
}

// TestP10ErasedFromANATSOfOthers: a user among others is erased while the streams are
// on a server of others. No file of it, nor of the data directory, holds a byte of the
// user, the others are as they were, and a rebuild brings nothing back.
func TestP10ErasedFromANATSOfOthers(t *testing.T) {
	t.Parallel()
	i, n := onNATS(t)
	i.begin()
	said := i.crowded()
	others := i.remains()
	who := marked("")
	episodes := i.mark(who, said)
	i.drained()
	if len(traces(t, i.data)) == 0 || len(traces(t, n.dir)) == 0 {
		t.Fatal("the marker is not there to begin with")
	}
	elsewhere := filepath.Join(t.TempDir(), "data")
	if _, stderr, code := run(t, nil, append([]string{"erase", "--user", who.User, "--data", elsewhere, "--yes"}, i.args...)...); code == 0 ||
		!strings.Contains(stderr, "services are connected") {
		t.Errorf("another process erases meanwhile: exit %d: %s", code, stderr)
	}

	r, _ := erase(t, "--server", i.HTTP, "--user", who.User, "--yes")
	if removed(r, "episodes") != uint64(episodes) || removed(r, "EPISODES") != uint64(episodes+3) || removed(r, "DEADLETTER") != 2 {
		t.Errorf("the receipt counts %+v, want %d episodes, 3 messages more, and 2 dead letters", r.Places, episodes)
	}
	for _, p := range r.Places {
		for _, text := range p.Beyond {
			if strings.Contains(text, "acknowledged") {
				t.Errorf("not reached: %s", text)
			}
		}
	}
	eventually(t, "an answer behind the erasure", func() error { _, err := i.api.Ledger(t.Context(), everything("default"), false); return err })
	if got := i.remains(); got != others {
		t.Errorf("the others are\n%s\nand were\n%s", got, others)
	}
	record, err := i.js.Stream(t.Context(), topology.StreamAudit)
	if err != nil {
		t.Fatal(err)
	}
	told, err := record.GetLastMsgForSubject(t.Context(), "palimpsest.audit.*."+r.Whom+"._._")
	if err != nil || told.Header.Get("ce-type") != string(events.KindUserErased) {
		t.Errorf("AUDIT says %+v of the erasure: %v", told, err)
	}
	i.kill()
	n.stop()
	wantNoTrace(t, i.data)
	wantNoTrace(t, n.dir)

	n.begin()
	if out := rebuild(t, i.data, 0, i.args...); out.Live != out.Rebuilt {
		t.Errorf("a rebuild makes %s of %s", out.Rebuilt, out.Live)
	}
	i.begin()
	if got := i.remains(); got != others {
		t.Errorf("behind a rebuild the others are\n%s\nand were\n%s", got, others)
	}
	i.say(who, "I live in Turin.")
	of := scope.Under(scope.Scope{Project: who.Project, User: who.User})
	i.settled(of, 1)
	if facts := i.facts(of); len(facts) != 1 {
		t.Errorf("%d facts are known of the user who came back, want 1", len(facts))
	}
	if again, _ := erase(t, "--server", i.HTTP, "--user", who.User, "--yes"); again.Incarnation != 2 {
		t.Errorf("the second erasure has incarnation %d, want 2", again.Incarnation)
	}
}

// TestP10ErasureWaitsForOtherServices: where another process reads the streams, an erasure
// begins once it ended. While the server of the streams is away, it waits too.
func TestP10ErasureWaitsForOtherServices(t *testing.T) {
	t.Parallel()
	i, n := onNATS(t)
	other := prepare(t, t.TempDir(), i.args...)
	i.begin()
	who := marked("")
	i.say(who, turn("I live in "+marker+"town."))
	i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), 1)
	i.drained()
	other.begin()
	id, err := i.api.Erase(t.Context(), who.User)
	if err != nil {
		t.Fatal(err)
	}
	i.waitsFor("services are connected")
	n.stop()
	other.kill()
	n.begin()
	i.receipt(id)
	i.kill()
	n.stop()
	wantNoTrace(t, i.data)
	wantNoTrace(t, n.dir)
}

// TestP10KilledWhileANATSOfOthersForgets kills the program at each step of an erasure.
// The next start finishes it before it serves.
func TestP10KilledWhileANATSOfOthersForgets(t *testing.T) {
	t.Parallel()
	file, err := armed()
	if err != nil {
		t.Fatal(err)
	}
	i, n := onNATS(t)
	i.file = file
	i.begin()
	i.lives()
	others := i.remains()
	i.drained()
	i.kill()
	for k, p := range failpoint.Points() {
		if p.Stage != failpoint.Erasure || p.Step == failpoint.Copied { // nothing is copied
			continue
		}
		i.env = []string{failpoint.Env + "=" + p.String() + ":1"}
		i.begin()
		who := marked(fmt.Sprint(k))
		i.say(who, turn("I live in "+marker+"town."))
		i.settled(scope.Under(scope.Scope{Project: who.Project, User: who.User}), 1)
		i.drained()
		id, err := i.api.Erase(t.Context(), who.User)
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		if _, said := i.ended(); !strings.Contains(said, "killed at "+p.String()) {
			t.Fatalf("%s is not reached; the program said %s", p, said)
		}
		i.wantErased(p, id, "episodes", others)
		n.stop()
		wantNoTrace(t, n.dir)
		n.begin()
	}
}
