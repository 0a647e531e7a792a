package clickhouse

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// seen records the deadline of each call.
type seen struct {
	driver.Conn
	left map[string]time.Duration
}

func (s seen) saw(name string, ctx context.Context) { //nolint:revive // the name tells more
	until, _ := ctx.Deadline()
	s.left[name] = time.Until(until)
}

func (s seen) Query(ctx context.Context, _ string, _ ...any) (driver.Rows, error) {
	s.saw("Query", ctx)
	return nil, nil
}

func (s seen) QueryRow(ctx context.Context, _ string, _ ...any) driver.Row {
	s.saw("QueryRow", ctx)
	return nil
}

func (s seen) PrepareBatch(ctx context.Context, _ string, _ ...driver.PrepareBatchOption) (driver.Batch, error) {
	s.saw("PrepareBatch", ctx)
	return nil, nil
}

func (s seen) Exec(ctx context.Context, _ string, _ ...any) error {
	s.saw("Exec", ctx)
	return nil
}

// TestRequestsAreBounded asks with a context that would wait for minutes.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s := seen{left: map[string]time.Duration{}}
	b := brief{s}
	_, _ = b.Query(ctx, "")
	_ = b.QueryRow(ctx, "")
	_, _ = b.PrepareBatch(ctx, "")
	_ = b.Exec(ctx, "")
	for i := range reflect.TypeFor[brief]().NumMethod() {
		name := reflect.TypeFor[brief]().Method(i).Name
		if left := s.left[name]; left <= 0 || left > writeLimit {
			t.Errorf("%s is bounded by %v", name, left)
		}
	}
}
