// Package clickhouse keeps the audit log in a ClickHouse database: table audit
// has a row for each applied delta, for users and their tools to
// query; table effects has each complete effect, for a rebuild. Rows that were
// delivered twice are stored twice until ClickHouse merges them, and every
// read counts them once by their key.
package clickhouse
