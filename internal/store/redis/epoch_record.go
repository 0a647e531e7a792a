package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/store"
)

// The epoch record is one row of the namespace. It holds the generation in use, the epoch
// in which the data was last whole, the servers that took part then, and whether
// data was lost since. If a server loses data, the epoch record is lost too, or its epoch
// is an older one; a server that restarts or takes over has another run id. Every
// new connection compares the run id before it sends any command, every write that
// depends on stored rows names its epoch, and a pulse checks while nothing is written.
type epochRecord struct {
	generation uint64
	epoch      string
	// lost is the token of the loss that is to be mended; empty while whole.
	lost string
	// mended says that the episodes were put back after that loss.
	mended bool
}

func parseEpochRecord(reply any) epochRecord {
	f := hashOf(reply)
	return epochRecord{generation: f.uint("generation"), epoch: f["era"], lost: f["lost"], mended: f["mended"] != ""}
}

// errMoved: the call was made in a tenure that has ended, and changed nothing.
var errMoved = errors.New("redis: another generation or epoch began")

// errUnknownNode: a write met a server of a cluster that may lack what was
// acknowledged. It is returned bare, since the driver unwraps it.
var errUnknownNode = errors.New("LOST a server of the cluster was restarted or promoted")

// isRefused knows the answer of a guarded script, or of the greeting before it.
func isRefused(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "LOST") }

// writesIn is the key of the tenure in which a call writes to a cluster, whose
// scripts cannot ask the epoch record.
type writesIn struct{}

// askEpochRecord reads the epoch record and declares a loss where the servers of those run
// ids, or what the store knows, show one.
func (s *Store) askEpochRecord(ctx context.Context, on goredis.Scripter, known *tenure, ids ...string) (epochRecord, error) {
	args := []any{rand.Text(), "", 0, 0}
	if known != nil {
		args = []any{rand.Text(), known.pass, flag(!isClosed(s.Lost())), known.generation}
	}
	reply, err := epochRecordScript.Run(ctx, on, []string{s.epochRecordKey()}, with(ids, args...)...).Result()
	if err := explain(err); err != nil {
		return epochRecord{}, fmt.Errorf("read the epoch record: %w", err)
	}
	return parseEpochRecord(reply), nil
}

// greet runs on a new connection before any other command. In a cluster the epoch record
// may be on another node: the next look reports the unknown node to it, and no write is
// sent to an unknown node before that.
func (s *Store) greet(ctx context.Context, cn *goredis.Conn) error {
	id, err := runID(ctx, cn)
	if err != nil || id == "" {
		return err
	}
	if s.cluster() {
		s.meet(id)
		if t, writes := ctx.Value(writesIn{}).(*tenure); writes && (s.isLost() || s.tenure() != t) {
			return errUnknownNode
		}
		return nil
	}
	w, err := s.askEpochRecord(ctx, cn, nil, id)
	if t := s.tenure(); err == nil && t != nil && (w.lost != "" || t.pass != "" && t.pass != w.epoch) {
		s.lose() // another process may have mended it meanwhile; the next look finds out
	}
	return err
}

// runID is empty for a Sentinel, which holds nothing.
func runID(ctx context.Context, node goredis.Cmdable) (string, error) {
	text, err := node.Info(ctx, "server").Result()
	if err != nil {
		return "", explain(err)
	}
	switch info := parseInfo(text); {
	case info["redis_mode"] == "sentinel":
		return "", nil
	case info["run_id"] == "":
		return "", errors.New("redis: the server does not tell its run id")
	default:
		return info["run_id"], nil
	}
}

// runIDs are those of all servers that take writes.
func (s *Store) runIDs(ctx context.Context) ([]string, error) {
	cluster, ok := s.client.(*goredis.ClusterClient)
	if !ok {
		id, err := runID(ctx, s.client)
		return []string{id}, err
	}
	found := make(chan string, maxNodes)
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
		id, err := runID(ctx, node)
		if err == nil {
			found <- id
		}
		return err
	})
	close(found)
	var ids []string
	for id := range found {
		ids = append(ids, id)
	}
	return ids, explain(err)
}

// maxNodes is what Redis calls the most that a cluster should have.
const maxNodes = 1000

// meet notes a node of a cluster. A node that the epoch record does not list may lack
// acknowledged writes, so the epoch record is updated before anything is written.
func (s *Store) meet(id string) {
	s.state.Lock()
	defer s.state.Unlock()
	if !s.nodes[id] {
		s.unknownNodes[id] = true
	}
}

// look reads the epoch record and follows it.
func (s *Store) look(ctx context.Context) (epochRecord, error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	if err := s.begin(ctx); err != nil {
		return epochRecord{}, err
	}
	defer s.end()
	unknownNodes := s.met()
	var ids []string
	if len(unknownNodes) > 0 || !s.cluster() {
		var err error
		if ids, err = s.runIDs(ctx); err != nil {
			return epochRecord{}, err
		}
	}
	w, err := s.askEpochRecord(ctx, s.client, s.tenure(), ids...)
	if err != nil {
		return w, err
	}
	s.told(unknownNodes, ids)
	return w, s.follow(ctx, w)
}

// met returns the nodes of a cluster that the epoch record does not list.
func (s *Store) met() map[string]bool {
	s.state.Lock()
	defer s.state.Unlock()
	return maps.Clone(s.unknownNodes)
}

func (s *Store) told(unknownNodes map[string]bool, ids []string) {
	s.state.Lock()
	defer s.state.Unlock()
	for id := range unknownNodes {
		delete(s.unknownNodes, id)
	}
	if len(ids) == 0 {
		return
	}
	s.nodes = map[string]bool{}
	for _, id := range ids {
		s.nodes[id] = true
	}
}

// follow takes up the generation and the epoch that the epoch record names.
func (s *Store) follow(ctx context.Context, w epochRecord) error {
	t := s.tenure()
	if s.building.Load() {
		return nil // no other process uses it
	}
	moved := t == nil || t.pass == "" || t.generation != w.generation || w.lost == "" && (t.pass != w.epoch || s.isLost())
	if moved {
		if err := s.take(ctx, w.generation, w.epoch); err != nil {
			return err
		}
	}
	if w.lost != "" {
		s.lose()
		return nil
	}
	s.state.Lock()
	defer s.state.Unlock()
	if isClosed(s.lost) {
		s.lost = make(chan struct{})
		s.cfg.Logger.Info("the memory store is complete again", "generation", w.generation)
	}
	return nil
}

func (s *Store) lose() {
	s.state.Lock()
	defer s.state.Unlock()
	if !isClosed(s.lost) && !s.through {
		close(s.lost)
		s.cfg.Logger.Warn("redis may have lost acknowledged writes, or a generation was promoted: writes wait until they are restored")
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// isLost reports whether writes have to wait.
func (s *Store) isLost() bool {
	s.state.Lock()
	defer s.state.Unlock()
	return isClosed(s.lost) || len(s.unknownNodes) > 0
}

// Lost implements [store.Mender].
func (s *Store) Lost() <-chan struct{} {
	s.state.Lock()
	defer s.state.Unlock()
	return s.lost
}

// spacesEvery is how many pulses pass between two looks at the vector spaces. It is less
// than followLimit.
const spacesEvery = 2

// pulse checks the epoch record and the vector spaces while nothing is written.
func (s *Store) pulse(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Pulse)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if n%spacesEvery == 0 {
				if err := s.followSpaces(ctx, s.tenure()); err != nil && ctx.Err() == nil {
					s.cfg.Logger.Debug("read the vector spaces", "error", err)
				}
			}
			if ok, err := s.stands(ctx, s.tenure()); ok && err == nil {
				continue
			}
			if _, err := s.look(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Logger.Debug("read the epoch record", "error", err)
			}
		}
	}
}

// stands reports whether the epoch record has the epoch and the generation of a tenure and
// no loss. It is one command; a new connection detects a server that restarted.
func (s *Store) stands(ctx context.Context, t *tenure) (bool, error) {
	names := []string{"era", "lost", "generation"}
	reply, err := s.call(ctx, with(names, "HMGET", t.epochRecord())...)
	w := pick(names, reply)
	return w["era"] == t.pass && w["lost"] == "" && w.uint("generation") == t.generation && !s.isLost() && s.tenure() == t, err
}

// guarded runs a script that depends on stored rows. It returns [errMoved] if its
// tenure has ended and another has begun.
func (s *Store) guarded(ctx context.Context, t *tenure, script *goredis.Script, keys []string, args ...any) (any, error) {
	replies, err := s.guardedAll(ctx, t, script, []scriptCall{{keys, args}})
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

func (s *Store) guardedAll(ctx context.Context, t *tenure, script *goredis.Script, calls []scriptCall) ([]any, error) {
	if !s.through && t.pass != "" && s.isLost() {
		if err := s.passed(ctx, t); err != nil {
			return nil, err
		}
	}
	pass, calling := "", ctx
	switch {
	case t.pass == "":
	case !s.cluster():
		pass = t.pass
	case !s.through:
		calling = context.WithValue(ctx, writesIn{}, t)
	}
	for i, c := range calls {
		if pass != "" {
			calls[i].keys = slices.Concat(c.keys, []string{t.epochRecord()})
		}
		calls[i].args = append([]any{pass}, c.args...)
	}
	replies, err := s.runAll(calling, script, calls)
	if isRefused(err) {
		if err := s.passed(ctx, t); err != nil {
			return nil, err
		}
		return nil, errMoved // it was mended just then
	}
	return replies, err
}

// passed returns nil if the tenure still is the one to write in, according to the
// epoch record.
func (s *Store) passed(ctx context.Context, t *tenure) error {
	if !s.through {
		if _, err := s.look(ctx); err != nil {
			return err
		}
		if s.tenure() != t {
			return errMoved
		}
		if !s.isLost() {
			return nil
		}
	}
	return fmt.Errorf("redis: %w", store.ErrLost)
}

// unbroken returns nil if nothing was lost in a tenure so far, so that earlier reads
// in it were complete. The connection that reads detects a server that restarted; a
// server that was emptied, or is being mended, shows it in the epoch record alone.
func (s *Store) unbroken(ctx context.Context, t *tenure) error {
	if s.through || t.pass == "" {
		return nil
	}
	if ok, err := s.stands(ctx, t); ok || err != nil {
		return err
	}
	if err := s.passed(ctx, t); err != nil {
		return err
	}
	return errMoved // it was mended just then
}

// settled runs a call, and repeats it with new keys and a new script while another
// tenure begins meanwhile.
func settled[T any](call func() (T, error)) (v T, err error) {
	for range maxAttempts {
		if v, err = call(); !errors.Is(err, errMoved) {
			return v, err
		}
	}
	return v, err
}
