// Package e2e runs the real program and uses it as its users do: NATS in, HTTP out,
// and the command line.
//
// The table (table_test.go) holds the scenarios that need no more than that. Each
// runs in every shape (shapes_test.go): one process, and one or two processes of
// each service on remote NATS, Redis and ClickHouse servers, with the permissions of
// a deployment. One Palimpsest of a shape serves all scenarios at once, each with a
// tenant of its own. No shape can skip a scenario. The other tests are not in the
// table because each stops or damages a part of one shape.
//
//   - The files of a data directory: fault_test.go, disk_linux_test.go,
//     heal_test.go, rebuild_test.go, misuse_test.go, erase_test.go, and the end of replay_test.go.
//   - The one process, at any moment or at a chosen step: durable_test.go,
//     failpoint_test.go, churn_test.go, chaos_test.go, bench_test.go.
//   - A process of a cluster: replicas_test.go, and the end of chaos_test.go.
//   - An engine: redis_test.go, clickhouse_test.go, outage_test.go, forget_test.go,
//     brokers_test.go.
//
// The 42 behavioural cases of a mem0-compatible memory are in cases_*_test.go, by
// number, on SQLite and on Redis.
//
// Two laws (cut_test.go, rebuild_law_test.go) are about services put together by
// hand.
//
// Tests that begin with P1 to P10 are named after the promise that they check.
//
//   - P1: an acknowledged message is never lost, whichever process is killed.
//   - P2: a message that is delivered twice has its effect once.
//   - P3: the messages of one (user, agent) are consolidated in their order.
//   - P4: nothing changes without a delta that states the reason.
//   - P5: a memory rebuilt from the streams equals the one that it replaces.
//   - P6: nothing is read or written across a project or a scope.
//   - P7: during an outage work waits or falls back, and continues afterwards.
//   - P8: bad input gets an answer that names the field, and delays nothing else.
//   - P9: accepting an episode calls no model and embeds nothing.
//   - P10: an erased user is in no file, and nothing brings the user back.
package e2e
