package sqlite

import (
	"context"
	"fmt"
	"iter"

	"palimpsest/internal/audit"
	"palimpsest/internal/filter"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// replayPage is how many keys of effects one query returns; the caller may take
// as long as it likes over each effect, and no query is open meanwhile.
const replayPage = 1000

// spot is where an effect stands in the order of the stream.
type spot struct {
	place
	sequence uint64
}

// Between implements [audit.Archive].
func (l *Log) Between(ctx context.Context, sel scope.Selector, after, until uint64, matching filter.Expr) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		fail := func(err error) {
			yield(events.Event[events.EffectCommitted]{}, fmt.Errorf("audit sqlite: replay after %d: %w", after, err))
		}
		last := spot{place{project: sel.Project}, after + 1} // the key of no effect comes first at a sequence
		for {
			page, err := l.spots(ctx, last, until)
			if err != nil {
				fail(err)
				return
			}
			skip, err := l.unmatched(ctx, page, matching)
			if err != nil {
				fail(err)
				return
			}
			for _, last = range page {
				if skip[last.place] {
					continue
				}
				s, err := scope.ParseKey(last.project, last.scope)
				if err != nil {
					fail(err)
					return
				}
				if !sel.Match(s) {
					continue
				}
				e, err := l.whole(ctx, last.place)
				if err != nil {
					fail(err)
					return
				}
				if audit.Holds(e, matching) && !yield(e, nil) {
					return
				}
			}
			if len(page) < replayPage {
				return
			}
		}
	}
}

// spots are those of a project behind one and not behind a sequence, in order.
// What the log has from two histories may stand at one sequence.
func (l *Log) spots(ctx context.Context, behind spot, until uint64) (page []spot, err error) {
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	rows, err := l.file.Read.QueryContext(ctx, `SELECT sequence, scope, revision FROM effects
		WHERE project = ? AND sequence <= ? AND (sequence, scope, revision) > (?, ?, ?)
		ORDER BY sequence, scope, revision LIMIT ?`,
		behind.project, until, behind.sequence, behind.scope, behind.revision, replayPage)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		at := spot{place: place{project: behind.project}}
		if err := rows.Scan(&at.sequence, &at.scope, &at.revision); err != nil {
			return nil, err
		}
		page = append(page, at)
	}
	return page, rows.Err()
}

// whole is effect for a caller that has not entered.
func (l *Log) whole(ctx context.Context, at place) (events.Event[events.EffectCommitted], error) {
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return events.Event[events.EffectCommitted]{}, err
	}
	defer leave()
	return l.effect(ctx, at)
}
