package watch

import (
	"fmt"
	"os"
	"time"
)

// interval keeps the promise that a missing file is noticed within 1 s.
const interval = 400 * time.Millisecond

// Files watches files that stand for one database.
type Files struct {
	path string
	gone chan struct{}
	quit chan struct{}
	done chan struct{}
}

// Start watches a file, which errors will name, and those that belong to it,
// until Stop is called. All of them exist.
func Start(path string, more ...string) (*Files, error) {
	files := map[string]os.FileInfo{}
	for _, name := range append(more, path) {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
		files[name] = info
	}
	w := &Files{path: path, gone: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{})}
	go w.run(files)
	return w, nil
}

func (w *Files) run(files map[string]os.FileInfo) {
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

// Gone is closed once one of the files was removed or replaced.
func (w *Files) Gone() <-chan struct{} { return w.gone }

// Check returns an error naming the path once a file is gone.
func (w *Files) Check() error {
	select {
	case <-w.gone:
		return fmt.Errorf("%s was removed or replaced while in use", w.path)
	default:
		return nil
	}
}

// Stop ends the watch.
func (w *Files) Stop() {
	close(w.quit)
	<-w.done
}
