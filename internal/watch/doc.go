// Package watch detects that a file in use was removed or replaced, by its device
// and inode. A process that has the file open would write to the removed one
// without an error.
package watch
