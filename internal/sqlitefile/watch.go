package sqlitefile

import (
	"fmt"
	"os"
	"time"
)

// interval keeps the promise that a missing file is noticed within 1 s.
const interval = 400 * time.Millisecond

// watch detects that a file in use was removed or replaced, by its device and inode. A
// process that has the file open would write to the removed one without an error.
type watch struct {
	path string
	gone chan struct{} // closed once a file was removed or replaced
	quit chan struct{}
	done chan struct{}
}

// watchFiles watches a file, which errors name, and those that belong to it, until stop
// is called. All of them exist.
func watchFiles(path string, more ...string) (*watch, error) {
	files := map[string]os.FileInfo{}
	for _, name := range append(more, path) {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
		files[name] = info
	}
	w := &watch{path: path, gone: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{})}
	go w.run(files)
	return w, nil
}

func (w *watch) run(files map[string]os.FileInfo) {
	defer close(w.done)
	tick := time.NewTicker(interval)
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

// check returns an error that names the path once a file is gone.
func (w *watch) check() error {
	select {
	case <-w.gone:
		return fmt.Errorf("%s was removed or replaced while in use", w.path)
	default:
		return nil
	}
}

// stop ends the watch.
func (w *watch) stop() {
	close(w.quit)
	<-w.done
}
