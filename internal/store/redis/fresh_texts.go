package redis

import (
	"sync/atomic"

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
	store.Memo[string, store.PendingVector]
	embeds atomic.Bool
}

func (f *freshTexts) note(queued []queuedText) {
	for _, q := range queued {
		if f.embeds.Load() && len(q.Text) <= maxFreshText {
			f.Put(q.entry, q.PendingVector, maxFresh)
		}
	}
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
