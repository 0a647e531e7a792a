package sqlite

import (
	"fmt"
	"os"
	"time"
)

// watchInterval keeps the promise that a missing file is noticed within 1 s.
const watchInterval = 400 * time.Millisecond

// watch notices that the database file, or its write-ahead log, was removed or
// replaced: SQLite would go on writing to the orphan without an error.
type watch struct {
	path string
	gone chan struct{}
	quit chan struct{}
	done chan struct{}
}

func startWatch(path string) (*watch, error) {
	files := map[string]os.FileInfo{}
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("sqlite: watch: %w", err)
		}
		files[name] = info
	}
	w := &watch{path: path, gone: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{})}
	go w.run(files)
	return w, nil
}

func (w *watch) run(files map[string]os.FileInfo) {
	defer close(w.done)
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-tick.C:
			for name, opened := range files {
				if now, err := os.Stat(name); err != nil || !os.SameFile(opened, now) {
					close(w.gone)
					return
				}
			}
		}
	}
}

// check returns an error naming the path once the file is gone.
func (w *watch) check() error {
	select {
	case <-w.gone:
		return fmt.Errorf("sqlite: %s was removed or replaced while in use", w.path)
	default:
		return nil
	}
}

func (w *watch) stop() {
	close(w.quit)
	<-w.done
}
