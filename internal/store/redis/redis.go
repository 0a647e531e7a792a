package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"palimpsest/internal/store"
)

// Store is the memory store on Redis. Any number of processes may hold it open.
type Store struct {
	cfg    Config
	client goredis.UniversalClient
	held   atomic.Pointer[tenure]
	turns  turns

	mu       sync.Mutex
	closed   bool
	inFlight sync.WaitGroup
	// finish ends what runs beside the calls.
	finish []func()

	looking sync.Mutex
	state   sync.Mutex
	lost    chan struct{} // closed while writes have to wait
	// nodes are the servers of a cluster that the epoch record knows, unknown nodes those
	// that were met since.
	nodes, unknownNodes map[string]bool
	// through says that it serves one who mends, over the client of another.
	through bool
	// building says that the generation is under construction.
	building atomic.Bool
}

var _ store.Store = (*Store)(nil)

// silence turns off the log of the client, which is one variable for all stores of the
// process.
var silence = sync.OnceFunc(logging.Disable)

// Open connects, and makes the generation's index where there is none. It returns
// once the index is whole. A store whose server was started again since it was
// last in use opens as one that is lost; see [store.Mender].
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	silence() // all that the client says comes as an error too
	s := &Store{cfg: cfg.withDefaults(), lost: make(chan struct{}), nodes: map[string]bool{}, unknownNodes: map[string]bool{}}
	var err error
	if s.client, err = connect(s.cfg.URL, s.greet); err != nil {
		return nil, err
	}
	if s.cfg.hook != nil {
		s.client.AddHook(s.cfg.hook)
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open: %w", err), s.Close())
	}
	return s, nil
}

// Reach returns nil if the server answers and lets us in. It changes nothing there.
func Reach(ctx context.Context, cfg Config) (err error) {
	if err := cfg.Validate(); err != nil {
		return err
	}
	silence()
	client, err := connect(cfg.withDefaults().URL, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := explain(client.Ping(ctx).Err()); err != nil {
		return err
	}
	if err := client.Do(ctx, "FT._LIST").Err(); err != nil && !strings.HasPrefix(err.Error(), "NOPERM ") {
		return explain(err)
	}
	return nil
}

func (s *Store) open(ctx context.Context) error {
	s.checkServer(ctx)
	choose := s.chooseInUse
	if s.cfg.Building {
		choose = s.chooseNext
	}
	if err := choose(ctx); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	s.beside(s.pulse)
	return nil
}

// beside runs work until the store closes.
func (s *Store) beside(work func(context.Context)) {
	s.finish = append(s.finish, aside(context.Background(), work))
}

// aside runs work until stop is called, which waits for its end.
func aside(ctx context.Context, work func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// prepare brings the server's side of a generation into being.
func (s *Store) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.migrate, s.openSpaces, s.makeIndex} {
		if err := step(ctx); err != nil {
			return err
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

// Close waits for calls that are in progress.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return store.ErrClosed
	}
	s.closed = true
	s.mu.Unlock()
	for _, finish := range slices.Backward(s.finish) {
		finish()
	}
	s.inFlight.Wait()
	if s.through {
		return nil // the client is another's
	}
	return explain(s.client.Close())
}

// call runs one command; a missing value is nil, and a search gives an [answer].
func (s *Store) call(ctx context.Context, args ...any) (any, error) {
	replies, err := s.pipe(ctx, [][]any{args})
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// pipe runs commands in one round trip and returns their replies in order, as call
// does. With a search go none that write: they may be sent more than once.
func (s *Store) pipe(ctx context.Context, commands [][]any) (replies []any, err error) {
	if len(commands) == 0 {
		return nil, nil
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	for attempt := range maxRepeats + 1 {
		if replies, err = s.send(ctx, commands); !repeats(ctx, commands, err) {
			break
		}
		pause(ctx, attempt)
	}
	return replies, err
}

func (s *Store) send(ctx context.Context, commands [][]any) ([]any, error) {
	sent := make([]goredis.Cmder, len(commands))
	for i, args := range commands {
		sent[i] = command(ctx, args)
	}
	if len(sent) == 1 {
		_ = s.client.Process(ctx, sent[0]) // which is its own error
	} else {
		p := s.client.Pipeline()
		for _, c := range sent {
			_ = p.Process(ctx, c)
		}
		_, _ = p.Exec(ctx) // each command has its own error
	}
	replies := make([]any, len(sent))
	for i, c := range sent {
		var err error
		if replies[i], err = replyOf(c); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// scriptCall is one call of a script.
type scriptCall struct {
	keys []string
	args []any
}

// runAll runs a script for each call, in one transaction for all calls of a slot.
func (s *Store) runAll(ctx context.Context, script *goredis.Script, calls []scriptCall) ([]any, error) {
	if len(calls) == 1 {
		reply, err := s.run(ctx, script, calls[0].keys, calls[0].args...)
		return []any{reply}, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	replies := make([]any, len(calls))
	for _, together := range s.transactions(calls) {
		pending := make([]*goredis.Cmd, len(together))
		err := s.loaded(ctx, script, func() error {
			pipe := s.client.TxPipeline()
			for i, n := range together {
				pending[i] = script.EvalSha(ctx, pipe, calls[n].keys, calls[n].args...)
			}
			_, err := pipe.Exec(ctx)
			return err
		})
		if err != nil {
			return nil, explain(err)
		}
		for i, n := range together {
			replies[n] = pending[i].Val()
		}
	}
	return replies, nil
}

// loaded runs what runs one script and nothing else, again where the server did not
// have the script.
func (s *Store) loaded(ctx context.Context, script *goredis.Script, run func() error) error {
	err := run()
	if err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return err
	}
	if err := script.Load(ctx, s.client).Err(); err != nil {
		return err
	}
	return run()
}

// transactions groups calls that may be made together: all, or in a cluster those
// on one scope, in their order.
func (s *Store) transactions(calls []scriptCall) (groups [][]int) {
	at := map[string]int{}
	for i, c := range calls {
		slot := ""
		if s.cluster() {
			slot = c.keys[0]
		}
		if _, known := at[slot]; !known {
			at[slot] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[slot]] = append(groups[at[slot]], i)
	}
	return groups
}

// Scattered implements [store.Mender].
func (s *Store) Scattered() bool { return s.cluster() }

func (s *Store) cluster() bool {
	_, ok := s.client.(*goredis.ClusterClient)
	return ok
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
