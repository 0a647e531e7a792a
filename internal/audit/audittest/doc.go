// Package audittest holds the suites that every backend of package audit must
// pass: [RunJournal] and, for logs, RunLog.
package audittest
