package e2e

import (
	"os"
	"testing"
)

// twelveEnv asks for two processes of each service also where all engines are the
// tests' own.
const twelveEnv = "E2E_TWELVE"

// shape is a way to run Palimpsest. It starts one for all scenarios, and returns
// the instance at each of its addresses.
type shape struct {
	name  string
	start func(t *testing.T) (doors []*instance)
}

func shapes() []shape {
	embedded := func(t *testing.T) []*instance {
		t.Helper()
		return []*instance{start(t, t.TempDir()).instance}
	}
	processes := func(replicas int) func(t *testing.T) []*instance {
		return func(t *testing.T) []*instance {
			t.Helper()
			return startGuarded(t, replicas).doors()
		}
	}
	if os.Getenv("TEST_REDIS_URL") != "" || os.Getenv("TEST_CLICKHOUSE_DSN") != "" || os.Getenv(twelveEnv) != "" {
		return []shape{{"embedded", embedded}, {"twelve processes", processes(2)}}
	}
	return []shape{{"embedded", embedded}, {"six processes", processes(1)}}
}
