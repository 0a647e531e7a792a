// Package sqlite is the memory store in one SQLite file: the store of the
// process that owns the file, and of nobody else.
//
// All writes pass one goroutine, which runs what waits in one transaction
// (group commit); reads have connections of their own and see what was
// committed. Text is searched in FTS5 posting lists that are cut by fact scope,
// vectors by an exact scan of contiguous memory.
package sqlite
