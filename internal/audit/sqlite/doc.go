// Package sqlite keeps the audit log in one SQLite file. An effect is stored
// once, compressed and whole; a table of keys says which record of which
// effect answers a question, and the record is taken out of its effect when it
// is read, so that the two cannot disagree.
package sqlite
