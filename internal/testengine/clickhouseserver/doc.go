// Package clickhouseserver gives tests a ClickHouse: the servers that
// TEST_CLICKHOUSE_DSN names (one or more DSNs, with spaces between), or else
// the real engine out of libchdb, which `make clickhouse` fetches, in a process
// of its own on loopback. Where there is neither, the tests are skipped.
package clickhouseserver
