package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/audit"
	"palimpsest/internal/memory"
	"palimpsest/internal/poll"
	"palimpsest/pkg/scope"
)

var _ audit.Eraser = (*Log)(nil)

// The server keeps the text of a mutation in a file. So the names of the scopes to
// delete are in a table, which is dropped behind it.
const erasingTable = `CREATE TABLE IF NOT EXISTS erasing{everywhere} (project String, scope String)
	ENGINE = {MergeTree} ORDER BY (project, scope)`

// erased are the tables that an erasure deletes from.
var erased = []string{"audit", "effects", "daily_deltas"}

// Erase implements [audit.Eraser]: a mutation rewrites each part that has rows of the
// user. It returns once the server removed the previous parts.
func (l *Log) Erase(ctx context.Context, whom memory.Whom) (out audit.Erased, err error) {
	if err := l.enter(); err != nil {
		return out, err
	}
	defer l.leave()
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"allow_nondeterministic_mutations": 1, // the rows that they delete stand in a table
		"insert_deduplicate":               0, // a step that is repeated inserts the same again
		"distributed_ddl_output_mode":      "none",
	}))
	e := erasing{Log: l, whom: whom}
	for _, step := range []func(context.Context) error{e.list, e.count, e.recountDays, e.deleteRows, e.dropParts, e.forget} {
		if err := step(ctx); err != nil {
			return e.out, fmt.Errorf("audit clickhouse: erase: %w", plain(err))
		}
	}
	return e.out, nil
}

// Scan implements [audit.Eraser].
func (l *Log) Scan(ctx context.Context, whom memory.Whom) (uint64, error) {
	if err := l.enter(); err != nil {
		return 0, err
	}
	defer l.leave()
	keys, err := l.scopesOf(ctx, whom)
	if err != nil {
		return 0, fmt.Errorf("audit clickhouse: scan: %w", plain(err))
	}
	return uint64(len(keys)), nil
}

// scopesOf lists the keys of the user's scopes.
func (l *Log) scopesOf(ctx context.Context, whom memory.Whom) (keys []string, err error) {
	all, err := collect(ctx, l.long, func(rows driver.Rows) (key string, err error) {
		err = rows.Scan(&key)
		return key, err
	}, `SELECT scope FROM (SELECT DISTINCT scope FROM effects WHERE project = {project:String}
		UNION DISTINCT SELECT DISTINCT scope FROM audit WHERE project = {project:String})`, clickhouse.Named("project", whom.Project))
	if err != nil {
		return nil, err
	}
	for _, key := range all {
		s, err := scope.ParseKey(whom.Project, key)
		if err != nil {
			return nil, err
		}
		if whom.Owns(s) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// erasing is the deletion of a user's rows. Each step may run again.
type erasing struct {
	*Log
	whom memory.Whom
	keys []string
	// named counts the scopes that the server knows by name, those of an earlier attempt
	// included: their old parts may be there yet.
	named uint64
	out   audit.Erased
}

func (e *erasing) exec(ctx context.Context, statement string, args ...any) error {
	return e.long.Exec(ctx, e.place.statement(statement), args...)
}

// theirs are the rows of a table that have the key of a scope of the user.
const theirs = " (project, scope) IN (SELECT project, scope FROM erasing)"

// list names the scopes to the server.
func (e *erasing) list(ctx context.Context) (err error) {
	if e.keys, err = e.scopesOf(ctx, e.whom); err != nil {
		return err
	}
	if err := e.exec(ctx, erasingTable); err != nil {
		return err
	}
	if len(e.keys) > 0 {
		err = e.nameScopes(ctx)
	}
	if err == nil {
		err = e.long.QueryRow(ctx, "SELECT count() FROM erasing").Scan(&e.named)
	}
	return err
}

func (e *erasing) nameScopes(ctx context.Context) error {
	return e.long.Exec(ctx, `INSERT INTO erasing SELECT {project:String}, arrayJoin({keys:Array(String)})`,
		clickhouse.Named("project", e.whom.Project), clickhouse.Named("keys", e.keys))
}

func (e *erasing) count(ctx context.Context) error {
	for table, into := range map[string]*uint64{"effects": &e.out.Effects, "audit": &e.out.Rows} {
		if err := e.long.QueryRow(ctx, "SELECT count() FROM "+table+" FINAL WHERE"+theirs).Scan(into); err != nil {
			return err
		}
	}
	e.out.Rows += e.out.Effects
	return nil
}

// recountDays counts the days again on which deltas of the user were applied. The
// counts of a day are hashes of records, from which none can be taken out. Records that
// retention removed stay counted, by their hashes.
func (e *erasing) recountDays(ctx context.Context) error {
	days, err := collect(ctx, e.long, func(rows driver.Rows) (day time.Time, err error) {
		err = rows.Scan(&day)
		return day, err
	}, "SELECT DISTINCT toDate(applied_at) AS day FROM audit WHERE"+theirs)
	if err != nil || len(days) == 0 {
		return err
	}
	names := make([]string, len(days))
	for i, day := range days {
		names[i] = day.Format(time.DateOnly)
	}
	at := []any{clickhouse.Named("project", e.whom.Project), clickhouse.Named("days", names)}
	const those = " project = {project:String} AND has({days:Array(String)}, toString(%s))"
	if err := e.mutate(ctx, "daily_deltas", fmt.Sprintf(those, "day"), at...); err != nil {
		return err
	}
	return e.exec(ctx, `INSERT INTO daily_deltas SELECT project, toDate(applied_at) AS day, rule, kind, reason, decided_by,
		uniqExactState(sipHash64(scope, revision, idx)) AS deltas FROM audit WHERE`+fmt.Sprintf(those, "toDate(applied_at)")+
		" AND NOT"+theirs+" GROUP BY project, day, rule, kind, reason, decided_by", at...)
}

func (e *erasing) deleteRows(ctx context.Context) error {
	if e.named == 0 {
		return nil
	}
	for _, table := range []string{"audit", "effects"} {
		if err := e.mutate(ctx, table, theirs); err != nil {
			return err
		}
	}
	return nil
}

// mutate deletes rows of a table, and waits until no part has one. A mutation that is
// killed meanwhile leaves rows, which the scan finds: they are deleted at the next attempt.
func (e *erasing) mutate(ctx context.Context, table, where string, args ...any) error {
	if err := e.await(ctx, "mutations", "NOT is_done"); err != nil { // those of an attempt before must not pile up
		return err
	}
	if err := e.exec(ctx, "ALTER TABLE "+table+"{everywhere} DELETE WHERE"+where, args...); err != nil {
		return err
	}
	return e.await(ctx, "mutations", "NOT is_done")
}

// ErrMutation: the server does not finish a mutation, by which an erasure deletes rows.
var ErrMutation = errors.New("a mutation fails: remove the cause, or end it with KILL MUTATION; then the erasure continues")

// mutationPatience is how long a mutation may fail before an erasure gives up: the server
// tries again without end.
const mutationPatience = 15 * time.Second

// failing returns the reason for which the server cannot finish a mutation of our tables;
// empty where it can.
func (e *erasing) failing(ctx context.Context, from, database string) (reason string, err error) {
	err = e.long.QueryRow(ctx, "SELECT anyIf(concat(table, ', ', mutation_id, ': ', latest_fail_reason), latest_fail_reason != '') FROM "+from+
		" WHERE database = {database:String} AND has({tables:Array(String)}, table) AND NOT is_done",
		clickhouse.Named("database", database), clickhouse.Named("tables", erased)).Scan(&reason)
	return reason, err
}

// hasty are the settings by which a table removes old parts at once.
var hasty = []string{"old_parts_lifetime", "cleanup_delay_period", "max_cleanup_delay_period", "cleanup_delay_period_random_add"}

// dropParts has the server remove the parts that a mutation or a merge replaced. It
// keeps them for 8 minutes, and looks for older ones every 30 s to 5 minutes, unless
// settings differ when it opens the table. A table that a death leaves closed is opened
// with the log.
func (e *erasing) dropParts(ctx context.Context) error {
	if e.named == 0 {
		return nil
	}
	for _, table := range erased {
		for _, statement := range []string{
			"ALTER TABLE " + table + "{everywhere} MODIFY SETTING " + strings.Join(hasty, " = 1, ") + " = 1",
			"DETACH TABLE " + table + "{everywhere} SYNC", "ATTACH TABLE " + table + "{everywhere}",
		} {
			if err := e.exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	return e.await(ctx, "parts", "NOT active")
}

// partsPoll is the pause between questions whether the server is done.
const partsPoll = 200 * time.Millisecond

// await waits until a table of the system has no row about ours for which a condition
// holds.
func (e *erasing) await(ctx context.Context, system, condition string) error {
	from := "system." + system
	if e.place.cluster != "" {
		from = "clusterAllReplicas('" + e.place.cluster + "', " + from + ")"
	}
	var database string
	if err := e.long.QueryRow(ctx, "SELECT currentDatabase()").Scan(&database); err != nil {
		return err
	}
	var failed time.Time // since when a mutation fails
	return poll.Until(ctx, partsPoll, func() (bool, error) {
		var left uint64
		err := e.long.QueryRow(ctx, "SELECT count() FROM "+from+
			" WHERE database = {database:String} AND has({tables:Array(String)}, table) AND "+condition,
			clickhouse.Named("database", database), clickhouse.Named("tables", erased)).Scan(&left)
		if err != nil || left == 0 || system != "mutations" {
			return left == 0, err
		}
		reason, err := e.failing(ctx, from, database)
		switch {
		case err != nil || reason == "":
			failed = time.Time{}
		case failed.IsZero():
			failed = time.Now()
		case time.Since(failed) > mutationPatience:
			err = fmt.Errorf("%w (%s)", ErrMutation, reason)
		}
		return false, err
	})
}

// forget drops the names of the scopes, and the haste.
func (e *erasing) forget(ctx context.Context) error {
	for _, table := range erased {
		if e.named == 0 {
			break
		}
		if err := e.exec(ctx, "ALTER TABLE "+table+"{everywhere} RESET SETTING "+strings.Join(hasty, ", ")); err != nil {
			return err
		}
	}
	return e.exec(ctx, "DROP TABLE IF EXISTS erasing{everywhere} SYNC")
}

// reopen opens the tables that an erasure closed before it died.
func reopen(ctx context.Context, conn driver.Conn, to place) error {
	there, err := collect(ctx, conn, func(rows driver.Rows) (name string, err error) {
		err = rows.Scan(&name)
		return name, err
	}, "SELECT name FROM system.tables WHERE database = currentDatabase()")
	if err != nil || !slices.Contains(there, "erasing") {
		return err
	}
	for _, table := range erased {
		if slices.Contains(there, table) {
			continue
		}
		if err := to.exec(ctx, conn, "ATTACH TABLE "+table+"{everywhere}"); err != nil {
			return fmt.Errorf("open a table that an erasure closed: %w", err)
		}
	}
	return nil
}
