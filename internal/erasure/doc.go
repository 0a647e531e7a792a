// Package erasure keeps the jobs, receipts and tombstones of erased users as files
// of a data directory. It stores no name of a user, but a keyed hash that identifies
// one. Each place that holds data deletes it; this package only coordinates them.
package erasure
