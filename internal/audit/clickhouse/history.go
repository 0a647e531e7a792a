package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
)

// revision is what the log has one effect of.
type revision struct {
	project, scope string
	number         uint64
}

// identity tells an effect from one of another history. Its id alone does not:
// the same message may be committed again, at another place.
type identity struct {
	id       string
	sequence uint64
}

// refuseOther returns [audit.ErrOtherHistory] if an effect has a revision of
// which the log has another. Two writers that write different histories at the
// same moment do not see each other; there is one sink.
func (l *Log) refuseOther(ctx context.Context, effects []events.Event[events.EffectCommitted]) error {
	given, err := ext.NewTable("given", ext.Column("project", "String"), ext.Column("scope", "String"), ext.Column("revision", "UInt64"))
	if err != nil {
		return fmt.Errorf("name revisions: %w", err)
	}
	known := make(map[revision]identity, len(effects))
	for _, e := range effects {
		at, is := revision{e.Data.Scope.Project, e.Data.Scope.Key(), e.Data.Revision}, identity{e.ID, e.Sequence}
		if other, ok := known[at]; ok {
			if other != is {
				return otherHistory(at, is)
			}
			continue
		}
		known[at] = is
		if err := given.Append(at.project, at.scope, at.number); err != nil {
			return fmt.Errorf("name revisions: %w", err)
		}
	}
	// The rows travel as a table: as parameters they would not fit an address.
	_, err = collect(clickhouse.Context(ctx, clickhouse.WithExternalTable(given)), l.conn, func(rows driver.Rows) (none struct{}, err error) {
		var at revision
		var is identity
		if err := rows.Scan(&at.project, &at.scope, &at.number, &is.id, &is.sequence); err != nil {
			return none, err
		}
		if known[at] != is {
			return none, otherHistory(at, known[at])
		}
		return none, nil
	}, `SELECT project, scope, revision, id, sequence FROM effects
		WHERE (project, scope, revision) IN (SELECT project, scope, revision FROM given)`)
	if err != nil {
		return fmt.Errorf("look for other histories: %w", plain(err))
	}
	return nil
}

func otherHistory(at revision, is identity) error {
	return fmt.Errorf("%w: scope %s of %s, revision %d, sequence %d", audit.ErrOtherHistory, at.scope, at.project, at.number, is.sequence)
}
