package clickhouse

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/audit"
	"palimpsest/internal/filter"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// replayPage is how many keys of effects one query finds: it reads a column of
// the whole project for them.
const replayPage = 10_000

// spot is where an effect of a project stands in the order of the stream.
type spot struct {
	sequence uint64
	scope    string
	revision uint64
}

// Between implements [audit.Archive].
func (l *Log) Between(ctx context.Context, sel scope.Selector, after, until uint64, matching filter.Expr) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		fail := func(err error) {
			yield(events.Event[events.EffectCommitted]{}, fmt.Errorf("audit clickhouse: replay after %d: %w", after, plain(err)))
		}
		last := spot{sequence: after + 1} // the key of no effect comes first at a sequence
		for {
			page, err := l.spots(ctx, sel, last, until)
			if err != nil {
				fail(err)
				return
			}
			more := len(page) == replayPage
			if more {
				last = page[replayPage-1]
			}
			if page, err = l.matched(ctx, sel.Project, page, matching); err != nil {
				fail(err)
				return
			}
			for some := range slices.Chunk(page, effectPage) {
				found, err := l.at(ctx, sel.Project, some)
				if err != nil {
					fail(err)
					return
				}
				for _, e := range found {
					if sel.Match(e.Scope) && audit.Holds(e, matching) && !yield(e, nil) {
						return
					}
				}
			}
			if !more {
				return
			}
		}
	}
}

// spots are those behind one and not behind a sequence, in order. What the log
// has from two histories may stand at one sequence.
func (l *Log) spots(ctx context.Context, sel scope.Selector, behind spot, until uint64) ([]spot, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	where := `project = {project:String} AND sequence <= {until:UInt64}
		AND (sequence, scope, revision) > ({sequence:UInt64}, {scope:String}, {revision:UInt64})`
	args := []any{
		clickhouse.Named("project", sel.Project), clickhouse.Named("until", until), clickhouse.Named("sequence", behind.sequence),
		clickhouse.Named("scope", behind.scope), clickhouse.Named("revision", behind.revision), clickhouse.Named("limit", replayPage),
	}
	// A key holds what it names; the selector has the last word.
	for name, id := range map[string]*string{"user": sel.User, "session": sel.Session, "agent": sel.Agent} {
		if id != nil && *id != "" {
			where += " AND position(scope, {" + name + ":String}) > 0"
			args = append(args, clickhouse.Named(name, "/"+name+"/"+scope.Encode(*id)+"/"))
		}
	}
	return collect(ctx, l.conn, func(rows driver.Rows) (at spot, err error) {
		err = rows.Scan(&at.sequence, &at.scope, &at.revision)
		return at, err
	}, `SELECT sequence, scope, revision FROM effects WHERE `+where+`
		ORDER BY sequence, scope, revision LIMIT 1 BY sequence, scope, revision LIMIT {limit:UInt64}`, args...)
}

// at are the effects of those spots, in their order.
func (l *Log) at(ctx context.Context, project string, spots []spot) ([]events.Event[events.EffectCommitted], error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	scopes, revisions := make([]string, len(spots)), make([]uint64, len(spots))
	for i, at := range spots {
		scopes[i], revisions[i] = at.scope, at.revision
	}
	return collect(ctx, l.conn, scanEffect, `SELECT sequence, id, source, at, correlation_id, causation_id, effect FROM effects
		WHERE project = {project:String} AND (scope, revision) IN (
			SELECT key.1, key.2 FROM (SELECT arrayJoin(arrayZip({scopes:Array(String)}, {revisions:Array(UInt64)})) AS key))
		ORDER BY sequence, scope, revision LIMIT 1 BY scope, revision`,
		clickhouse.Named("project", project), clickhouse.Named("scopes", scopes), clickhouse.Named("revisions", revisions))
}
