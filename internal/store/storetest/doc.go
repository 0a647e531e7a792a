// Package storetest is the suite that every backend of the memory store must
// pass: one file a topic, one call for all of them.
package storetest
