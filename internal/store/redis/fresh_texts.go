package redis

import (
	"sync"

	"palimpsest/internal/store"
)

// maxFresh bounds how many texts are remembered, and maxFreshText their size in
// bytes.
const (
	maxFresh     = 4096
	maxFreshText = 2048
)

// freshTexts remembers texts that this process has queued, by their entries, so that
// they need not be read again to be embedded. Only a process that embeds does so. A
// vector of a text that was replaced meanwhile is refused when it is put.
type freshTexts struct {
	mu    sync.Mutex
	texts map[string]store.PendingVector // nil in a process that does not embed
}

// begin starts to keep texts. A process that embeds calls it.
func (f *freshTexts) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.texts == nil {
		f.texts = map[string]store.PendingVector{}
	}
}

func (f *freshTexts) note(queued []queuedText) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.texts == nil {
		return
	}
	if len(f.texts)+len(queued) > maxFresh {
		clear(f.texts)
	}
	for _, q := range queued[:min(len(queued), maxFresh)] {
		if len(q.Text) <= maxFreshText {
			f.texts[q.entry] = q.PendingVector
		}
	}
}

// take returns what is remembered of rows, by their entries, once.
func (f *freshTexts) take(rows []queuedRow) map[string]store.PendingVector {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := map[string]store.PendingVector{}
	for _, r := range rows {
		if v, ok := f.texts[r.entry]; ok {
			delete(f.texts, r.entry)
			taken[r.entry] = v
		}
	}
	return taken
}

// queuedText is a text with its entry in the queue.
type queuedText struct {
	entry string
	store.PendingVector
}

func entriesIn(queued []queuedText) []string {
	list := make([]string, len(queued))
	for i, q := range queued {
		list[i] = q.entry
	}
	return list
}
