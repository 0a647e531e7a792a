// Package sqlite keeps the audit log in one SQLite file. An effect is stored
// once, complete and compressed; a table of keys finds the record of an effect that
// answers a query, and the record is read from its effect, so that the two cannot
// disagree.
package sqlite
