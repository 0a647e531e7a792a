// Package eval measures retrieval over labelled conversations: it records the
// turns through the API, asks the questions, and compares the answers with the
// turns that are known to hold them. It measures extraction over labelled
// utterances as well.
package eval
