package redisdouble

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Server is a running double. Close discards its data.
type Server struct {
	redis *miniredis.Miniredis
	begun time.Time
	run   string // differs between this server and one that starts later

	// mu serializes the commands, as the real server does.
	mu       sync.Mutex
	engine   *engine
	lives    [][]string              // arguments of each HEXPIRE of the command under way
	dirty    []string                // keys that the command under way wrote
	expiring map[string]time.Time    // keys that end by themselves
	earliest time.Time               // of those; zero for none
	fields   map[hashField]time.Time // fields of hashes that end by themselves
	now      time.Time               // while a command is under way

	clientsMu sync.Mutex
	clients   map[*server.Peer]*client
}

// client is a connection.
type client struct {
	running  bool     // a command of it went on to miniredis
	queueing bool     // it is between MULTI and EXEC
	queued   []string // keys that its EXEC will write
	refused  bool     // something that was to be queued
}

// Open starts a double on an address, host:port, where port 0 chooses a free
// one.
func Open(addr string) (*Server, error) {
	s := &Server{
		redis: miniredis.NewMiniRedis(), begun: time.Now(), run: rand.Text(),
		expiring: map[string]time.Time{}, fields: map[hashField]time.Time{}, clients: map[*server.Peer]*client{},
	}
	s.engine = newEngine(s.hashes, s.remove)
	if err := s.redis.StartAddr(addr); err != nil {
		return nil, fmt.Errorf("redisdouble: listen: %w", err)
	}
	s.redis.Server().SetPreHook(s.intercept)
	return s, nil
}

// URL is what a client connects to.
func (s *Server) URL() string { return fmt.Sprintf("redis://%s/0", s.redis.Addr()) }

// Close hangs up on every client.
func (s *Server) Close() { s.redis.Close() }

// intercept runs before every command. It runs the command of a client from here, so
// that the indexes are up to date before another begins. The calls that this makes
// (the command itself, once more, and the calls of a script) go on to miniredis.
func (s *Server) intercept(c *server.Peer, name string, args ...string) bool {
	cl := s.client(c)
	if cl == nil || cl.running {
		return s.passOn(c, cl, name, args)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = time.Now()
	s.redis.SetTime(s.now)
	s.expire()
	s.expireFields()
	if own := s.own(name); own != nil {
		s.answer(c, cl, name, own, args)
		return true
	}
	if name == "EXEC" && cl.refused {
		s.abort(c, cl)
		return true
	}
	cl.running = true
	s.redis.Server().Dispatch(c, append([]string{name}, args...))
	cl.running = false
	switch name {
	case "MULTI":
		cl.queueing = true
	case "EXEC", "DISCARD":
		*cl = client{}
	}
	s.follow()
	return true
}

// abort answers an EXEC as the server does after an error in the queue, which
// miniredis never saw.
func (s *Server) abort(c *server.Peer, cl *client) {
	inside := server.NewPeer(bufio.NewWriter(io.Discard))
	inside.Ctx = c.Ctx
	s.redis.Server().Dispatch(inside, []string{"DISCARD"})
	*cl = client{}
	c.WriteError("EXECABORT Transaction discarded because of previous errors.")
}

// client finds a connection, or nil for the inside of a script. miniredis gives
// a connection its context with its first command, a script's before that.
func (s *Server) client(c *server.Peer) *client {
	s.clientsMu.Lock()
	defer s.clientsMu.Unlock()
	if cl, ok := s.clients[c]; ok {
		return cl
	}
	if c.Ctx != nil {
		return nil
	}
	cl := new(client)
	s.clients[c] = cl
	c.OnDisconnect(func() {
		s.clientsMu.Lock()
		defer s.clientsMu.Unlock()
		delete(s.clients, c)
	})
	return cl
}

// passOn passes the command to miniredis, or refuses it. It records the written keys.
func (s *Server) passOn(c *server.Peer, cl *client, name string, args []string) (refused bool) {
	spec, ok := commands[name]
	if reason := spec.refuse(args); !ok || reason != "" {
		if !ok {
			reason = "command"
		}
		if cl != nil {
			cl.refused = cl.queueing
		}
		c.WriteError(fmt.Sprintf("REDISDOUBLE %s is not in the double: %s %s", reason, name, strings.Join(args, " ")))
		return true
	}
	if name == "HEXPIRE" {
		s.lives = append(s.lives, args)
	}
	switch {
	case cl != nil && cl.queueing && name == "EXEC":
		s.dirty = append(s.dirty, cl.queued...)
	case cl != nil && cl.queueing:
		cl.queued = append(cl.queued, spec.written(args)...)
	default:
		s.dirty = append(s.dirty, spec.written(args)...)
	}
	return false
}

// follow brings the indexes up to date with the written keys.
func (s *Server) follow() {
	for _, args := range s.lives {
		s.endFields(args)
	}
	s.lives = s.lives[:0]
	seen := make(map[string]bool, len(s.dirty))
	keys := make([]string, 0, len(s.dirty))
	for i := len(s.dirty) - 1; i >= 0; i-- { // a key counts where it was written last
		if key := s.dirty[i]; !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	s.dirty = s.dirty[:0]
	for i := len(keys) - 1; i >= 0; i-- {
		s.followKey(keys[i])
	}
}

func (s *Server) followKey(key string) {
	delete(s.expiring, key)
	if ttl := s.redis.TTL(key); ttl > 0 {
		at := s.now.Add(ttl)
		s.expiring[key] = at
		if s.earliest.IsZero() || at.Before(s.earliest) {
			s.earliest = at
		}
	}
	if s.engine.concerns(key) {
		s.engine.update(key, s.hash(key))
	}
}

// hash reads a key; nil if it is none.
func (s *Server) hash(key string) map[string]string {
	names, err := s.redis.HKeys(key)
	if err != nil {
		return nil
	}
	hash := make(map[string]string, len(names))
	for _, name := range names {
		hash[name] = s.redis.HGet(key, name)
	}
	return hash
}

// hashes reads those whose keys have one of the prefixes.
func (s *Server) hashes(prefixes []string, yield func(key string, hash map[string]string)) {
	for _, key := range s.redis.Keys() {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			continue
		}
		if hash := s.hash(key); hash != nil {
			yield(key, hash)
		}
	}
}

// remove deletes keys.
func (s *Server) remove(keys []string) {
	for _, key := range keys {
		s.redis.Del(key)
	}
	s.dirty = append(s.dirty, keys...)
	s.follow()
}

// expire removes the keys whose end has come, which miniredis never does.
func (s *Server) expire() {
	if s.earliest.IsZero() || s.now.Before(s.earliest) {
		return
	}
	s.earliest = time.Time{}
	var ended []string
	for key, at := range s.expiring {
		if !at.After(s.now) {
			ended = append(ended, key)
		} else if s.earliest.IsZero() || at.Before(s.earliest) {
			s.earliest = at
		}
	}
	s.remove(ended)
}

// hashField is one of a hash.
type hashField struct{ key, name string }

// expireFields removes the fields whose end has come, which miniredis never does.
func (s *Server) expireFields() {
	for f, at := range s.fields {
		if !at.After(s.now) {
			delete(s.fields, f)
			s.redis.HDel(f.key, f.name)
		}
	}
}

// endFields notes the fields that an HEXPIRE named, which end by themselves.
func (s *Server) endFields(args []string) {
	for _, name := range args[min(4, len(args)):] {
		if ttl := s.redis.HTTL(args[0], name); ttl > 0 {
			s.fields[hashField{args[0], name}] = s.now.Add(ttl)
		}
	}
}
