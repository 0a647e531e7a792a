// Package eval measures retrieval over labelled conversations: it records the
// turns through the API, asks the questions, and compares the answers with the
// turns that are known to hold them.
package eval
