package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// place is where the log lies: on one server, or as a copy on each server of a
// cluster.
type place struct {
	cluster string // empty for one server
}

// replicas is where a table's copies meet, and what each of them is called, in
// the macros that each server of a cluster has. The path is one that names the
// table: a server that joins later finds the others there, which it would not
// under the path of the server's default, an identifier that is made with the
// table.
const replicas = "('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')"

// statement adapts a statement to the place: {everywhere} follows the name of the
// object that is created, changed or dropped, and braces surround the engine of a
// replicated table.
func (p place) statement(text string) string {
	if p.cluster == "" {
		return strings.NewReplacer("{everywhere}", "", "{MergeTree}", "MergeTree",
			"{ReplacingMergeTree}", "ReplacingMergeTree", "{AggregatingMergeTree}", "AggregatingMergeTree").Replace(text)
	}
	return strings.NewReplacer("{everywhere}", " ON CLUSTER `"+p.cluster+"`", "{MergeTree}", "ReplicatedMergeTree"+replicas,
		"{ReplacingMergeTree}", "ReplicatedReplacingMergeTree"+replicas,
		"{AggregatingMergeTree}", "ReplicatedAggregatingMergeTree"+replicas).Replace(text)
}

// exec runs a statement where it belongs. On a cluster it returns once every
// server is done with it, and is an error if one is away.
func (p place) exec(ctx context.Context, conn asker, text string) error {
	if p.cluster != "" {
		// In place of a row for each server.
		ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"distributed_ddl_output_mode": "none"}))
	}
	return conn.Exec(ctx, p.statement(text))
}

// check refuses a cluster that the server does not know, and one that would tear
// the log apart.
func (p place) check(ctx context.Context, conn asker) error {
	if p.cluster == "" {
		return nil
	}
	var shards uint64
	err := conn.QueryRow(ctx, "SELECT uniqExact(shard_num) FROM system.clusters WHERE cluster = {cluster:String}",
		clickhouse.Named("cluster", p.cluster)).Scan(&shards)
	switch {
	case err != nil:
		return err
	case shards == 0:
		return fmt.Errorf("the server has no cluster %q", p.cluster)
	case shards > 1:
		return fmt.Errorf("cluster %q has %d shards: the log is copied, not divided", p.cluster, shards)
	}
	return nil
}

// fits refuses tables that were made for one server: nothing turns them into
// copies of each other.
func (p place) fits(ctx context.Context, conn asker) error {
	if p.cluster == "" {
		return nil
	}
	var alone uint64
	err := conn.QueryRow(ctx, `SELECT count() FROM system.tables WHERE database = currentDatabase()
		AND name IN ('audit', 'effects', 'daily_deltas', 'migrations') AND NOT match(engine, '^(Replicated|Shared)')`).Scan(&alone)
	if err == nil && alone > 0 {
		err = errors.New("its tables were made for one server: name another database, which is filled from the streams")
	}
	return err
}

// writable is nil unless a table takes no rows because its server has lost touch
// with the others.
func (p place) writable(ctx context.Context, conn asker) error {
	if p.cluster == "" {
		return nil
	}
	var tables uint64
	err := conn.QueryRow(ctx, "SELECT count() FROM system.replicas WHERE database = currentDatabase() AND is_readonly").Scan(&tables)
	if err == nil && tables > 0 {
		err = errors.New("the server has lost touch with the cluster's Keeper")
	}
	return err
}
