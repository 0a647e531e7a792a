// Package e2e runs the real program and speaks to it as its users do: NATS in,
// HTTP out, the command line around them.
//
// The table (table_test.go) holds the scenarios that need no more than that. Each
// runs in every shape (shapes_test.go): one process, and one or two processes of
// each service on a NATS server, a Redis and a ClickHouse of others, within the
// permissions that they are deployed with. One Palimpsest of a shape serves all
// scenarios at once, each as a tenant of its own. No shape can leave out a
// scenario. What follows stands beside the table because it takes something away
// that belongs to one shape alone.
//
//   - The files of a data directory: fault_test.go, disk_linux_test.go,
//     heal_test.go, rebuild_test.go, misuse_test.go, and the end of replay_test.go.
//   - The one process, at any moment or at a chosen step: durable_test.go,
//     failpoint_test.go, churn_test.go, chaos_test.go, bench_test.go.
//   - A process of a cluster: replicas_test.go, and the end of chaos_test.go.
//   - An engine: redis_test.go, clickhouse_test.go, outage_test.go, forget_test.go,
//     brokers_test.go.
//
// Two laws (cut_test.go, rebuild_law_test.go) are about services put together by
// hand.
//
// What begins with P1 to P9 is named after the promise that it holds the program
// to. The tenth, that a user can be erased everywhere, has none yet: a scope can
// be closed, not erased.
//
//   - P1: what was acknowledged is never lost, whoever is killed and when.
//   - P2: nothing has its effect twice, whatever comes twice.
//   - P3: what one (user, agent) said is consolidated in the order it was said.
//   - P4: nothing changes without a delta that says why.
//   - P5: memory built anew from the streams is the one that it replaces.
//   - P6: nothing is read or written across a project or a scope.
//   - P7: with something down, work waits or falls back, and goes on by itself.
//   - P8: bad input gets an answer that names the field; nothing behind it stalls.
//   - P9: accepting an episode calls no model and embeds nothing.
package e2e
