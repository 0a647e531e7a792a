package sqlite

import (
	"context"
	"fmt"
	"time"

	"palimpsest/pkg/events"
)

const (
	// expireEvery is how often a log looks for records whose retention is over.
	expireEvery = time.Hour
	// expireAtOnce bounds the records that one transaction removes: a write waits
	// for it.
	expireAtOnce = 1000
	// deleteExpired finds records by the index of those that have a reason, which is
	// small. A record of a log from before reasons has one from the first report on.
	deleteExpired = `DELETE FROM record_rows WHERE (place, revision, idx) IN (
		SELECT place, revision, idx FROM record_rows INDEXED BY record_rows_by_reason
		WHERE reason > '' AND reason = ? AND kind = 'noop' AND applied_at < ? LIMIT ?)`
)

// expire calls [Log.Expire] every hour until the log is closed. The next call removes
// the records that this one could not remove.
func (l *Log) expire() {
	_ = l.Expire(context.Background())
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.closed {
		l.expiring.Reset(expireEvery)
	}
}

// Expire removes the records whose retention is over. An open log does so by itself
// when it is opened and every hour.
func (l *Log) Expire(ctx context.Context) error {
	for _, term := range l.retention.Terms() {
		before := l.now().Add(-term.Keep)
		for _, reason := range term.Reasons {
			for more := true; more; {
				var err error
				if more, err = l.expireSome(ctx, reason, before); err != nil {
					return fmt.Errorf("audit sqlite: remove expired records: %w", err)
				}
			}
		}
	}
	return nil
}

func (l *Log) expireSome(ctx context.Context, reason events.Reason, before time.Time) (more bool, err error) {
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	done, err := l.file.Write.ExecContext(ctx, deleteExpired, reason, before.UnixMicro(), expireAtOnce)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	if n > 0 {
		l.resting.Reset(restAfter)
	}
	return n == expireAtOnce, err
}
