package redis

import (
	"context"
	"strconv"

	"palimpsest/pkg/scope"
)

// Settle returns once what was written so far is read; it always is.
func (*Store) Settle(context.Context) error { return nil }

// ResumeAt sets the revision of a fact scope in a generation under construction:
// the next effect is the one behind it.
func (s *Store) ResumeAt(ctx context.Context, fact scope.Scope, revision uint64) error {
	return s.write(ctx, fact, nil, func(f fields, _ []any, b *batch) error {
		if f.uint("rev") != revision {
			b.guard(b.place.state(), "rev", f["rev"])
			b.set(f, "rev", strconv.FormatUint(revision, 10))
		}
		return nil
	})
}

// Seal returns once the index holds all that was written.
func (s *Store) Seal(ctx context.Context) error { return s.awaitIndex(ctx) }
