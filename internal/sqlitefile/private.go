package sqlitefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// private makes the file of a database readable and writable by its owner alone, and
// creates an empty one where there is none. SQLite gives its log the mode of the file. It
// must be called before the process opens the database: closing another descriptor of the
// file would end the locks of the process.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create a private file: %w", err)
	}
	for _, name := range []string{path, path + LogSuffix, path + IndexSuffix} { // versions before made them readable by all
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err == nil {
			err = os.Chmod(name, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) { // the file of another account, which a group may write
			return fmt.Errorf("make a file private: %w", err)
		}
	}
	return nil
}
