package erasure

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// ErrNoRoom: the copies of an erasure would not fit on the disk.
var ErrNoRoom = errors.New("the disk has too little room to erase: new files are written beside the old ones")

// Room returns an error unless the disk has room for copies of the files of a data
// directory; free measures the free bytes of its disk. A job that ran out of room would
// keep every later start from serving.
func Room(data string, free func(dir string) (int64, error)) error {
	size := int64(0)
	err := filepath.WalkDir(data, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				size += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("measure the data: %w", err)
	}
	left, err := free(data)
	if err != nil {
		return fmt.Errorf("measure the disk: %w", err)
	}
	if left < size {
		return fmt.Errorf("%w: %d MiB are free, %d MiB are stored", ErrNoRoom, left>>20, size>>20)
	}
	return nil
}
