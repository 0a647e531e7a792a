package sqlite

import (
	"container/list"
	"sync"
)

// lru is an LRU cache with a budget in bytes. Its values are never changed in
// place, so a reader may keep one.
//
// A read that misses takes marks before it asks the database and returns them with
// its result. If a commit has changed that stripe in between, the result may be the
// older one, and is not cached.
type lru[K lruKey, V any] struct {
	budget int64
	mu     sync.Mutex
	held   map[K]*list.Element // of *book[K, V]
	recent *list.List
	used   int64
	counts map[int64]int // entries held, by the id whose changes affect them
	marks  [stripes]uint64
}

// stripes is the number of marks; ids that share one invalidate each other's reads.
const stripes = 64

// shelfKey is the key of a value. Several keys may return the same changes id: the
// posting lists of a scope do.
type lruKey interface {
	comparable
	changes() int64
}

type lruEntry[K lruKey, V any] struct {
	key   K
	value V
	size  int64
}

// bookBytes is what one entry costs besides its value.
const bookBytes = 256

func newLRU[K lruKey, V any](budget int64) *lru[K, V] {
	return &lru[K, V]{budget: budget, held: map[K]*list.Element{}, recent: list.New(), counts: map[int64]int{}}
}

func stripe(id int64) int { return int(uint64(id) % stripes) }

// get calls found for each key that is held, and returns the mark of each
// stripe as of now.
func (s *lru[K, V]) get(keys []K, found func(i int, value V)) (marks [stripes]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		if e, ok := s.held[key]; ok {
			s.recent.MoveToFront(e)
			found(i, e.Value.(*lruEntry[K, V]).value) //nolint:forcetypeassert // ours
		}
	}
	return s.marks
}

// put keeps a value of size bytes that was read after marks were taken.
func (s *lru[K, V]) put(key K, value V, size int64, marks *[stripes]uint64) {
	id := key.changes()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marks[stripe(id)] != marks[stripe(id)] || size+bookBytes > s.budget {
		return
	}
	if e, known := s.held[key]; known {
		s.remove(e)
	}
	s.held[key] = s.recent.PushFront(&lruEntry[K, V]{key: key, value: value, size: size})
	s.counts[id]++
	s.used += size + bookBytes
	s.shrink()
}

// change notes that a commit changed the rows of id. If held is true, an edit of the
// cached values must follow.
func (s *lru[K, V]) change(id int64) (held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks[stripe(id)]++
	return s.counts[id] > 0
}

// edit calls next with the value of each of keys that is held, and keeps what
// it returns; with keep false the value goes.
func (s *lru[K, V]) edit(keys []K, next func(i int, value V) (v V, size int64, keep bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		e, ok := s.held[key]
		if !ok {
			continue
		}
		b := e.Value.(*lruEntry[K, V]) //nolint:forcetypeassert // ours
		value, size, keep := next(i, b.value)
		if !keep {
			s.remove(e)
			continue
		}
		s.used += size - b.size
		b.value, b.size = value, size
	}
	s.shrink()
}

func (s *lru[K, V]) shrink() {
	for s.used > s.budget {
		s.remove(s.recent.Back())
	}
}

func (s *lru[K, V]) remove(e *list.Element) {
	b := e.Value.(*lruEntry[K, V]) //nolint:forcetypeassert // ours
	s.used -= b.size + bookBytes
	s.recent.Remove(e)
	delete(s.held, b.key)
	if id := b.key.changes(); s.counts[id] > 1 {
		s.counts[id]--
	} else {
		delete(s.counts, id)
	}
}
