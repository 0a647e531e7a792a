package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/store"
)

// Store is the memory store on Redis. Any number of processes may hold it open.
type Store struct {
	cfg    Config
	client goredis.UniversalClient
	layout layout

	mu       sync.Mutex
	closed   bool
	inFlight sync.WaitGroup

	// dimensions of the vectors; 0 while the first one is to come.
	dimensions atomic.Int64
	// failures is how many rows the index was last seen to have left out.
	failures atomic.Uint64
	watched  watchList
	turns    turns
}

var _ store.Store = (*Store)(nil)

// Open connects, and makes the generation's index where there is none. It
// returns once the index is whole.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	client, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, client: client, layout: layout{cfg.Namespace, cfg.Generation}}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return s, nil
}

// connect takes the replies of protocol 3: only they tell of a search that was
// cut short.
func connect(cfg Config) (goredis.UniversalClient, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("redis: url cannot be parsed") // its own error shows the password
	}
	if u.Query().Has("addr") {
		opts, err := goredis.ParseClusterURL(cfg.URL)
		if err != nil {
			return nil, errors.New("redis: url of a cluster cannot be parsed")
		}
		opts.Protocol, opts.ContextTimeoutEnabled = 3, true
		return goredis.NewClusterClient(opts), nil
	}
	opts, err := goredis.ParseURL(cfg.URL)
	if err != nil {
		return nil, errors.New("redis: url cannot be parsed")
	}
	opts.Protocol, opts.ContextTimeoutEnabled = 3, true
	return goredis.NewClient(opts), nil
}

// prepare brings the server's side of the store into being.
func (s *Store) prepare(ctx context.Context) error {
	s.checkServer(ctx)
	for _, step := range []func(context.Context) error{s.chooseGeneration, s.adoptEmbedder, s.makeIndex, s.loadWatched} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("open: %w", err)
		}
	}
	return nil
}

// begin counts a call under way; end must follow.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.inFlight.Add(1)
	return nil
}

func (s *Store) end() { s.inFlight.Done() }

// Close waits for what is under way.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return store.ErrClosed
	}
	s.closed = true
	s.mu.Unlock()
	s.inFlight.Wait()
	return explain(s.client.Close())
}

// call runs one command; a missing value is nil.
func (s *Store) call(ctx context.Context, args ...any) (any, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	v, err := s.client.Do(ctx, args...).Result()
	if err := explain(err); err != nil {
		return nil, err
	}
	return v, nil
}

// pipe runs commands in one round trip and returns their replies in order.
func (s *Store) pipe(ctx context.Context, commands [][]any) ([]any, error) {
	if len(commands) == 0 {
		return nil, nil
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	p := s.client.Pipeline()
	replies := make([]*goredis.Cmd, len(commands))
	for i, c := range commands {
		replies[i] = p.Do(ctx, c...)
	}
	_, _ = p.Exec(ctx) // each command has its own error
	out := make([]any, len(commands))
	for i, r := range replies {
		v, err := r.Result()
		if err := explain(err); err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// scriptCall is one call of a script.
type scriptCall struct {
	keys []string
	args []any
}

// runAll runs a script for each call in one transaction.
func (s *Store) runAll(ctx context.Context, script *goredis.Script, calls []scriptCall) ([]any, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	if err := explain(script.Load(ctx, s.client).Err()); err != nil {
		return nil, err
	}
	pipe := s.client.TxPipeline()
	pending := make([]*goredis.Cmd, len(calls))
	for i, c := range calls {
		pending[i] = script.EvalSha(ctx, pipe, c.keys, c.args...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, explain(err)
	}
	replies := make([]any, len(calls))
	for i, cmd := range pending {
		replies[i] = cmd.Val()
	}
	return replies, nil
}

// run runs a script on the server.
func (s *Store) run(ctx context.Context, script *goredis.Script, keys []string, args ...any) (any, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	v, err := script.Run(ctx, s.client, keys, args...).Result()
	if err := explain(err); err != nil {
		return nil, err
	}
	return v, nil
}
