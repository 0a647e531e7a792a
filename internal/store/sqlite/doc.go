// Package sqlite is the memory store in one SQLite file, which one process owns.
//
// All writes pass one goroutine, which runs the waiting ones in one transaction
// (group commit); reads have connections of their own and see committed rows. Text
// is searched in FTS5 posting lists that are cut by fact scope, vectors by an exact
// scan of contiguous memory.
package sqlite
