// Package watch notices that a file in use was removed or replaced, by its
// device and inode. Whoever has it open goes on writing to the orphan without an
// error.
package watch
