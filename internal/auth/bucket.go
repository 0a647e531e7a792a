package auth

import (
	"context"
	"errors"
)

// Bucket keeps the keys and their use, for all processes. Its entries have names and
// revisions; a value is JSON.
type Bucket interface {
	// Get reads an entry into v and returns its revision, 0 for none.
	Get(ctx context.Context, name string, v any) (revision uint64, err error)
	// Put writes an entry that has that revision, 0 for one that does not exist. The
	// error wraps [ErrChanged] where it has another.
	Put(ctx context.Context, name string, v any, revision uint64) error
	// Load yields the entries that are there now, and returns those that follow.
	Load(ctx context.Context, yield func(name string, value []byte)) (Changes, error)
}

// Changes are the entries that are written to a bucket.
type Changes interface {
	// Next waits for a while and yields the next entries, perhaps none. It returns
	// [ErrRestored] where the bucket was put back.
	Next(ctx context.Context, yield func(name string, value []byte)) error
	Close()
}

// Why an entry is not written, and why changes end.
var (
	// ErrChanged: another writer was first.
	ErrChanged = errors.New("auth: the entry has another revision by now")
	// ErrRestored: the bucket was restored from an older copy.
	ErrRestored = errors.New("auth: the bucket was restored")
)
