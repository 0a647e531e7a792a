package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/topology"
)

const (
	// publishWait is how long a message that is published among others may be
	// unacknowledged before it counts as lost.
	publishWait = 30 * time.Second
	// ensureAgain is how long after the topology could not be made it is tried
	// again: a cluster elects its leaders, and others make it at the same time.
	ensureAgain = 500 * time.Millisecond
	// ensureWait bounds the first try; each further one may take twice as long. A
	// cluster without a leader drops requests. The next try finds the streams that a
	// try has created.
	ensureWait = time.Second
	// ensureTries is how often a topology that cannot be used is checked: in a
	// cluster a new stream is not visible everywhere at once.
	ensureTries = 4
)

// oldestServer is the version that has all that the topology uses.
var oldestServer = [3]int{2, 12, 0}

// Remote is a broker outside this process: a server, or a cluster of them.
type Remote struct {
	conn *nats.Conn
	js   jetstream.JetStream
	away atomic.Pointer[[]string]
}

// OpenRemote connects and makes sure that the declared streams and consumers are
// there, as [Ensure] does. It tries until ctx ends, for a broker that is not
// there yet. The error wraps [ErrNoJetStream] where there is no JetStream, and
// [topology.ErrIncompatible] where the streams that are there cannot be used.
func OpenRemote(ctx context.Context, cfg ConnectConfig, decl topology.Declaration) (*Remote, error) {
	conn, err := Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r := &Remote{conn: conn}
	if r.js, err = NewJetStream(conn); err == nil {
		err = r.prepare(ctx, decl)
	}
	if err == nil {
		err = r.listen(cfg.Name)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	if size := conn.MaxPayload(); size < maxPayload && cfg.Logger != nil {
		cfg.Logger.Warn("the maximum payload of the broker is too small", "max_payload", size, "wanted", maxPayload)
	}
	return r, nil
}

// listen subscribes on the subject by which an erasure sees that a process is connected.
// Whatever the process does, the server has the subscription.
func (r *Remote) listen(name string) error {
	if name == "" {
		return nil
	}
	_, err := r.conn.Subscribe(topology.Presence(name), func(*nats.Msg) {})
	return err
}

func (r *Remote) prepare(ctx context.Context, decl topology.Declaration) error {
	if err := newEnough(r.conn); err != nil {
		return err
	}
	refused := 0
	for wait := ensureWait; ; wait *= 2 {
		err := r.ensure(ctx, decl, wait)
		if lacking := withoutJetStream(r.conn, err); lacking != nil {
			return lacking
		}
		if errors.Is(err, topology.ErrIncompatible) {
			refused++
		}
		if err == nil || refused == ensureTries {
			return err
		}
		select {
		case <-time.After(ensureAgain):
		case <-ctx.Done():
			return err
		}
	}
}

// withoutJetStream returns an error that wraps [ErrNoJetStream] if err, which a
// request to JetStream returned, says that there is none. A cluster says so too
// while it starts, but its servers announce that they have it.
func withoutJetStream(conn *nats.Conn, err error) error {
	switch announced, _ := conn.ConnectedServerJetStream(); {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the account on the server is not enabled for JetStream", ErrNoJetStream)
	case !announced && (errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, nats.ErrNoResponders)):
		return fmt.Errorf("%w: the server runs without JetStream (nats-server -js)", ErrNoJetStream)
	}
	return nil
}

// Reach returns nil if a server answers that is new enough and has JetStream. It
// changes nothing there.
func Reach(ctx context.Context, cfg ConnectConfig) error {
	if err := DialOne(ctx, cfg.URL); err != nil {
		return err
	}
	conn, err := Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := newEnough(conn); err != nil {
		return err
	}
	js, err := NewJetStream(conn)
	if err != nil {
		return err
	}
	// A service may not be permitted to ask more than about the streams.
	_, err = js.Stream(ctx, topology.StreamEpisodes)
	if lacking := withoutJetStream(conn, err); lacking != nil {
		return lacking
	}
	if errors.Is(conn.LastError(), nats.ErrPermissionViolation) {
		return fmt.Errorf("%w: the login may not use it", ErrNoJetStream)
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("ask JetStream: %w", err)
	}
	return nil
}

func newEnough(conn *nats.Conn) error {
	if have := conn.ConnectedServerVersion(); older(have, oldestServer) {
		return fmt.Errorf("%w: the server is version %s, and %d.%d is needed", topology.ErrIncompatible, have, oldestServer[0], oldestServer[1])
	}
	return nil
}

func (r *Remote) ensure(ctx context.Context, decl topology.Declaration, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return topology.Ensure(ctx, r.js, decl)
}

// Conn is the process's connection.
func (r *Remote) Conn() *nats.Conn { return r.conn }

// JetStream is the API on [Remote.Conn].
func (r *Remote) JetStream() jetstream.JetStream { return r.js }

// Callers is the same: a process that takes what API callers say does little else
// on its connection.
func (r *Remote) Callers() jetstream.JetStream { return r.js }

// ClientURL is the server that the process is connected to, without its
// password; the one it was last connected to while it is to none.
func (r *Remote) ClientURL() string { return r.conn.ConnectedUrlRedacted() }

// Ready returns nil while the server answers and JetStream takes messages; else
// why not.
func (r *Remote) Ready(ctx context.Context) error {
	if !r.conn.IsConnected() {
		return errors.Join(ErrNotConnected, r.conn.LastError())
	}
	audit, err := r.js.Stream(ctx, topology.StreamAudit)
	if err != nil {
		return fmt.Errorf("ask JetStream: %w", err)
	}
	away, err := quorum(audit.CachedInfo().Cluster)
	r.away.Store(&away)
	return err
}

// Away names the servers of a cluster that [Remote.Ready] found away when it was
// last called. All goes on while more than half of them are left.
func (r *Remote) Away() []string {
	if away := r.away.Load(); away != nil {
		return *away
	}
	return nil
}

// quorum tells which servers of a stream are away, and is an error where too few
// are left to take messages: those that are left tell of the stream all the same.
func quorum(c *jetstream.ClusterInfo) (away []string, err error) {
	if c == nil { // one server
		return nil, nil
	}
	for _, replica := range c.Replicas {
		if replica.Offline {
			away = append(away, replica.Name)
		}
	}
	all := len(c.Replicas) // all but the leader
	if c.Leader != "" {
		all++
	}
	if c.Leader == "" || 2*len(away) >= all {
		return away, fmt.Errorf("%w: of %d servers, %d are away %v", ErrNoQuorum, all, len(away), away)
	}
	return away, nil
}

// Shutdown sends what is still buffered and closes the connection.
func (r *Remote) Shutdown(context.Context) error {
	closeConn(r.conn)
	return nil
}

// older reports whether a version of the form major.minor.patch is before another; one
// that cannot be read is not.
func older(version string, than [3]int) bool {
	var have [3]int
	_, err := fmt.Sscanf(version, "%d.%d.%d", &have[0], &have[1], &have[2])
	return err == nil && slices.Compare(have[:], than[:]) < 0
}
