package redis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
)

// BuildSpace implements [store.VectorSpaces].
func (s *Store) BuildSpace(ctx context.Context, embedder embed.Info) error {
	t, built := s.tenure(), false
	for range maxAttempts {
		next, err := s.numberSpace(ctx, t, embedder)
		if built = next == nil; err == nil && !built {
			built, err = s.buildSpace(ctx, t, *next)
		}
		if err != nil {
			return fmt.Errorf("build a vector space: %w", err)
		}
		if built {
			return nil
		}
	}
	return fmt.Errorf("build a vector space: another process builds another one: %w", store.ErrAway)
}

// numberSpace gives the space of an embedder a number, before the index gets its
// fields, so that no fields are ever those of two embedders. It returns nil where the
// space is there. Processes that begin it together share the number: it stays the one
// behind the last that others know of.
func (s *Store) numberSpace(ctx context.Context, t *tenure, embedder embed.Info) (next *space, err error) {
	err = s.changeMeta(ctx, t, func(m *meta) bool {
		changed, there := m.leadTo(embedder, s.cfg.Now())
		if next = nil; there {
			return changed
		}
		if m.Begun == nil || !m.Begun.Embedder.Same(embedder) {
			m.Last, changed = m.last()+1, true
			m.Begun = &space{m.Last, embedder}
		}
		next = m.Begun
		return changed
	})
	return next, err
}

// buildSpace adds the fields of a space that was begun, and says that it is under
// construction. built is false where another one was begun meanwhile.
func (s *Store) buildSpace(ctx context.Context, t *tenure, next space) (built bool, err error) {
	if err := s.addFields(ctx, t, s.spaceFields(next)...); err != nil {
		return false, err
	}
	held, err := s.count(ctx, of(kindFact, kindEpisode).between(t.spaces.Load().served().flag(), number(refused), number(embedded)))
	if err != nil {
		return false, err
	}
	err = s.changeMeta(ctx, t, func(m *meta) bool {
		var changed bool
		if changed, built = m.leadTo(next.Embedder, s.cfg.Now()); built {
			return changed // another process was faster
		}
		if built = m.Begun != nil && m.Begun.ID == next.ID; !built {
			return false
		}
		m.drop(s.cfg.Now())
		if m.Begun, m.Next = nil, &next; held == 0 {
			m.serve(s.cfg.Now())
		}
		return true
	})
	return built, err
}

// leadTo reports whether the space of an embedder is there: under construction, or
// served. In the latter case it ends the construction of another.
func (m *meta) leadTo(embedder embed.Info, now time.Time) (changed, there bool) {
	switch {
	case m.Next != nil && m.Next.Embedder.Same(embedder):
		return false, true
	case m.served().Embedder.Same(embedder):
		return m.drop(now), true
	}
	return false, false
}

// drop ends the construction of a space, and reports whether there was one.
func (m *meta) drop(now time.Time) bool {
	if m.Next == nil {
		return false
	}
	m.Dropped = append(m.Dropped, droppedSpace{*m.Next, now.UnixMicro()})
	m.Next = nil
	return true
}

// serve switches to the space under construction.
func (m *meta) serve(now time.Time) {
	m.Dropped = append(m.Dropped, droppedSpace{m.served(), now.UnixMicro()})
	m.Space, m.Embedder, m.Next = m.Next.ID, m.Next.Embedder, nil
}

// MoveSpaces implements [store.VectorSpaces]. Vectors are dropped once every process
// had the time to hear of the switch.
func (s *Store) MoveSpaces(ctx context.Context) (done bool, err error) {
	t := s.tenure()
	m := t.spaces.Load()
	switch {
	case m.Next != nil:
		err = s.switchSpace(ctx, t, *m.Next)
	case len(m.Dropped) == 0:
		return true, nil
	case s.cfg.Now().UnixMicro()-m.Dropped[0].Since >= (followLimit * s.cfg.Pulse).Microseconds():
		err = s.dropSpace(ctx, t, m.Dropped[0].space)
	}
	if err != nil {
		return false, fmt.Errorf("move vector spaces: %w", err)
	}
	return false, nil
}

// switchSpace serves a space unless rows lack their vector in it. A row that is
// written meanwhile has no flag there and is found as such afterwards.
func (s *Store) switchSpace(ctx context.Context, t *tenure, next space) error {
	left, err := s.count(ctx, next.lacking())
	if err != nil {
		return err
	}
	if left > 0 {
		t.turnsOf(next).again()
		return nil
	}
	return s.changeMeta(ctx, t, func(m *meta) bool {
		if m.Next == nil || m.Next.ID != next.ID {
			return false
		}
		m.serve(s.cfg.Now())
		return true
	})
}

// dropPages is how many pages of rows lose a vector in one call.
const dropPages = 16

// dropSpace takes the fields of a space out of rows.
func (s *Store) dropSpace(ctx context.Context, t *tenure, gone space) error {
	for range dropPages {
		q := of(kindFact, kindEpisode).between(gone.flag(), "-inf", "+inf")
		a, err := s.search(ctx, s.searchArgs(q, pageSize, "NOCONTENT"))
		if err != nil {
			return err
		}
		commands := make([][]any, len(a.rows))
		for i, r := range a.rows {
			commands[i] = []any{"HDEL", string(r.key), gone.vector(), gone.flag(), gone.why()}
		}
		if len(commands) > 0 {
			if _, err := s.pipe(ctx, commands); err != nil {
				return err
			}
			continue
		}
		queue := startingWith(gone.queue())
		if _, err := s.call(ctx, "ZREMRANGEBYLEX", t.waitQueue(), queue.min, queue.max); err != nil {
			return err
		}
		return s.changeMeta(ctx, t, func(m *meta) bool {
			before := len(m.Dropped)
			m.Dropped = slices.DeleteFunc(m.Dropped, func(d droppedSpace) bool { return d.ID == gone.ID })
			return len(m.Dropped) < before
		})
	}
	return nil
}
