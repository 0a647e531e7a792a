package sqlitefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Where SQLite keeps what is read here: the index of its log in the byte order
// of the machine, the log in that of the network.
const (
	indexCopied    = 96  // frames that were copied into the file
	indexAttempted = 128 // frames that were being copied
	indexBytes     = 132
	logPageSize    = 8
	logHeader      = 32
	frameHeader    = 24
)

// checkLog returns damaged for a file whose log was cut after pages from beyond the cut
// had been copied into the file. SQLite would lay the older pages that are left in the
// log over them, and find nothing wrong. A log that was cut otherwise, or is gone, leaves
// an older state of the file; a process that is killed cuts nothing.
func checkLog(path string, damaged error) error {
	index, err := readHead(path+IndexSuffix, indexBytes)
	if err != nil || index == nil {
		return err
	}
	head, err := readHead(path+LogSuffix, logHeader)
	if err != nil || head == nil {
		return err
	}
	info, err := os.Stat(path + LogSuffix)
	if err != nil {
		return err
	}
	frame := int64(binary.BigEndian.Uint32(head[logPageSize:])) + frameHeader
	left := (info.Size() - logHeader) / frame
	copied := int64(max(binary.NativeEndian.Uint32(index[indexCopied:]), binary.NativeEndian.Uint32(index[indexAttempted:])))
	if left > 0 && left < copied {
		return fmt.Errorf("%s ends at frame %d of %d that were copied: %w", path+LogSuffix, left, copied, damaged)
	}
	return nil
}

// readHead returns the first n bytes of a file, nil where it has fewer.
func readHead(path string, n int) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	head := make([]byte, n)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, nil
	}
	return head, nil
}

// errTorn says that the log of a file was cut.
var errTorn = errors.New("the log was cut")

// Torn reports whether the log of the file at path was cut in a way that leaves
// neither a newer nor an older state whole.
func Torn(path string) bool { return errors.Is(checkLog(path, errTorn), errTorn) }

// Absent reports whether no database is at path, or one without a first page.
func Absent(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}
