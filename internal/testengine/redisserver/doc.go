// Package redisserver starts a Redis of a test's own, which the test may kill,
// give an older copy of its files, or empty.
//
// TEST_REDIS_SERVER names the redis-server, TEST_REDIS_MODULE its search module
// where it does not bring it along. Without them such tests are skipped.
package redisserver
