package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"palimpsest/pkg/scope"
)

// maxAttempts bounds how often a write is computed again because another write came
// between. Each attempt that fails means that another one succeeded.
const maxAttempts = 1000

var errContended = errors.New("redis: other writers of the scope always came first")

// batch is a list of commands over keys of one scope that take effect in one
// step, if what they were worked out from still holds.
type batch struct {
	place    place
	keys     []string
	index    map[string]int
	guards   []any
	own      []any // fields that rows of the scope have in common
	commands []any
	n, held  int
	state    []any // fields of the state to set
	// words is by how much the count of facts changes that hold a word.
	words map[string]int
	// noWords says that no fact of the scope was counted before.
	noWords bool
	// closed are the sessions that it ends.
	closed map[string]bool
	// entries are those of the lookup that are added (true) or taken out, in order.
	entries map[string]bool
	order   []string
	// queued are texts that are to be embedded.
	queued []queuedText
	// waitQueue are entries of the wait queue to add.
	waitQueue []string
	// scattered says that the wait queue is of another slot.
	scattered bool
	// hint says that a server that lost writes may take it too: it only saves work.
	hint bool
}

func (s *Store) newBatch(p place) *batch {
	b := &batch{place: p, index: map[string]int{}, words: map[string]int{}, entries: map[string]bool{}, scattered: s.cluster()}
	b.key(p.state()) // the script sets fields of the first key
	return b
}

func (b *batch) key(key string) int {
	i, ok := b.index[key]
	if !ok {
		b.keys = append(b.keys, key)
		i = len(b.keys)
		b.index[key] = i
	}
	return i
}

// guard refuses the batch if a field is no longer what it was; "" is absent.
func (b *batch) guard(key, field, was string) {
	b.held++
	b.guards = append(b.guards, b.key(key), field, was)
}

// do adds a command on a key.
func (b *batch) do(name, key string, args ...any) {
	b.n++
	b.commands = append(append(b.commands, name, b.key(key), len(args)), args...)
}

// row adds the writing of a row of the scope, whose fields that it has in common
// with others are sent once.
func (b *batch) row(key, kind string, args ...any) {
	if b.own == nil {
		b.own = b.place.levels(b.place.fact)
	}
	b.n++
	b.commands = append(append(b.commands, "ROW", b.key(key), len(args)+2, "k", kind), args...)
}

// count changes in how many facts each word is.
func (b *batch) count(words []string, by int) {
	for _, word := range words {
		b.words[word] += by
	}
}

// counts returns the arguments of the script for the word counts.
func (b *batch) counts() []any {
	var words, by []any
	added := true
	for word, n := range b.words {
		if n != 0 {
			words, by = append(words, word), append(by, n)
			added = added && n == 1
		}
	}
	if len(words) == 0 {
		return []any{0}
	}
	if added {
		by = nil
	}
	args := append([]any{b.key(b.place.words(kindFact)), len(words)}, words...)
	return append(append(args, flag(b.noWords), len(by)), by...)
}

// set changes a field of the state, in f as well.
func (b *batch) set(f fields, name, value string) {
	if f[name] == value {
		return
	}
	f[name] = value
	b.state = append(b.state, name, value)
}

// write reads a scope's state, and what else asks names, and lets work fill a batch
// from that, until it still held when the batch was committed. A batch that stays
// empty is not committed. The state's ver changes with each commit; episodes leave
// it alone.
func (s *Store) write(ctx context.Context, fact scope.Scope, asks func(place) [][]any, work func(f fields, replies []any, b *batch) error) error {
	if err := fact.Validate(); err != nil {
		return err
	}
	if asks == nil {
		asks = func(place) [][]any { return nil }
	}
	defer s.turns.take(s.place(fact))()
	if done, err := s.writeRead(ctx, s.place(fact), asks, work); done || err != nil {
		return err
	}
	for range maxAttempts {
		p := s.place(fact)
		// The state comes first: its ver guards what is read after it.
		replies, err := s.pipe(ctx, append([][]any{{"HGETALL", p.state()}}, asks(p)...))
		if err != nil {
			return err
		}
		f, b := hashOf(replies[0]), s.newBatch(p)
		if err := b.fill(f, replies[1:], work); err != nil {
			return err
		}
		if b.empty() {
			return s.putWaitQueueAfter(ctx, b)
		}
		done, err := s.commitTo(ctx, f, b)
		if err != nil && !errors.Is(err, errMoved) || done {
			return err
		}
	}
	return errContended
}

// writeRead tries a write on the state that was read last, if there is one. The
// results "nothing to write" and an error count only on a state that is read again.
func (s *Store) writeRead(
	ctx context.Context, p place, asks func(place) [][]any, work func(f fields, replies []any, b *batch) error,
) (done bool, err error) {
	f, ok := p.tenure.read.Take(p.tag)
	if !ok {
		return false, nil
	}
	replies, err := s.pipe(ctx, asks(p))
	if err != nil {
		return false, err
	}
	b := s.newBatch(p)
	if err := b.fill(f, replies, work); err != nil || b.empty() {
		return false, nil //nolint:nilerr // the next attempt tells
	}
	done, err = s.commitTo(ctx, f, b)
	if errors.Is(err, errMoved) {
		err = nil
	}
	return done, err
}

// fill has work fill the batch, which is guarded by the ver of the state.
func (b *batch) fill(f fields, replies []any, work func(f fields, replies []any, b *batch) error) error {
	b.guard(b.place.state(), "ver", f["ver"])
	version := strconv.FormatUint(f.uint("ver")+1, 10)
	if err := work(f, replies, b); err != nil {
		return err
	}
	b.putEntries()
	if !b.empty() {
		if !b.scattered {
			b.putWaitQueue()
		}
		b.set(f, "ver", version)
	}
	return nil
}

func (b *batch) empty() bool { return b.n == 0 && len(b.state) == 0 }

// commitTo commits what is written to a scope of that state. The first write says
// whose the state is.
func (s *Store) commitTo(ctx context.Context, state fields, b *batch) (bool, error) {
	if p := b.place; state["k"] == "" {
		b.state = append(b.state, p.scopeFields(kindState, p.fact)...)
	}
	if b.scattered {
		// An effect that is there is not applied again, so a process that dies before it
		// lists what came of it must have done so.
		if err := s.list(ctx, b.place.tenure, b.waitQueue...); err != nil {
			return false, err
		}
	}
	done, err := s.commit(ctx, b)
	if done {
		err = s.putWaitQueueAfter(ctx, b)
	}
	return done, err
}

func (s *Store) commit(ctx context.Context, b *batch) (bool, error) {
	c, t := b.call(), b.place.tenure
	if b.hint && !s.isLost() {
		t = &tenure{layout: t.layout}
	}
	done, err := s.guarded(ctx, t, commitScript, c.keys, c.args...)
	if err != nil {
		return false, fmt.Errorf("commit: %w", err)
	}
	return done == int64(1), nil
}

// call is that of the script that commits it.
func (b *batch) call() scriptCall {
	counts := b.counts()
	args := make([]any, 0, len(b.guards)+len(b.own)+len(b.commands)+len(counts)+len(b.state)+4)
	args = append(append(args, b.held), b.guards...)
	args = append(append(args, len(b.own)), b.own...)
	args = append(append(args, b.n), b.commands...)
	args = append(append(append(args, counts...), len(b.state)), b.state...)
	return scriptCall{b.keys, args}
}
