package store

import "sync"

// Memo is a bounded map that any number of goroutines may use. Where it is full it
// forgets everything. The zero value is empty.
type Memo[K comparable, V any] struct {
	mu   sync.Mutex
	held map[K]V
}

// Put keeps a value, among at most that many.
func (m *Memo[K, V]) Put(key K, value V, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == nil || len(m.held) >= most {
		m.held = map[K]V{}
	}
	m.held[key] = value
}

// Get returns the value of a key.
func (m *Memo[K, V]) Get(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok = m.held[key]
	return value, ok
}

// Take returns the value of a key and forgets it.
func (m *Memo[K, V]) Take(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok = m.held[key]
	delete(m.held, key)
	return value, ok
}

// Clear forgets everything.
func (m *Memo[K, V]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = nil
}
