// Package e2e runs the real program and speaks to it as its users do: NATS in,
// HTTP out, the command line around them.
//
// The table (table_test.go) holds the scenarios that need no more than that. Each
// runs in every shape (shapes_test.go): one process, and one or two processes of
// each service on a NATS server, a Redis and a ClickHouse of others, within the
// permissions that they are deployed with. One Palimpsest of a shape serves all
// scenarios at once, each as a tenant of its own. A shape that must leave out a
// scenario has no way to: what follows stands beside the table because it takes
// something away that belongs to one shape alone.
//
//   - The files of a data directory: fault_test.go, disk_linux_test.go,
//     heal_test.go, rebuild_test.go, misuse_test.go, and the end of replay_test.go.
//   - The one process, at any moment or at a chosen step: durable_test.go,
//     failpoint_test.go, churn_test.go, chaos_test.go, bench_test.go.
//   - A process of a cluster: replicas_test.go.
//   - An engine: redis_test.go, clickhouse_test.go, outage_test.go, forget_test.go.
//
// Two laws (cut_test.go, rebuild_law_test.go) are about services put together by
// hand.
//
// What begins with P1 to P9 is named after the promise that it holds the program
// to. The tenth, forgetting, has none yet: a scope can be closed, not erased.
package e2e
