// Package clickhouse keeps the audit log in a ClickHouse database: table audit
// has a row for each delta as it was applied, for people and their tools to
// query; table effects has each effect whole, for a rebuild. Rows that were
// delivered twice stand there twice until ClickHouse merges them away, and every
// read counts them once by their key.
package clickhouse
