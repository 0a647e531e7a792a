// Package erasure keeps the jobs, receipts and tombstones of erased users as files
// of a data directory. It stores no name of a user: a keyed hash tells whether a
// user is the one. It deletes nothing itself; each place that holds data does.
package erasure
