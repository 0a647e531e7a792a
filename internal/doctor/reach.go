package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// ReachAll asks all servers among engines at the same time, and returns the errors of
// those that cannot be used.
func ReachAll(ctx context.Context, engines ...Engine) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	errs := make([]error, len(engines))
	var asked sync.WaitGroup
	for i, e := range engines {
		if e.Reach != nil {
			asked.Go(func() { errs[i] = e.Reach(ctx) })
		}
	}
	asked.Wait()
	return errors.Join(errs...)
}

// Writable reports why a data directory cannot be used; one that does not exist
// yet is created when it is needed.
func Writable(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return fmt.Errorf("data: %w", err)
	case !info.IsDir():
		return fmt.Errorf("data: %s is not a directory", dir)
	}
	f, err := os.CreateTemp(dir, ".check-*")
	if err != nil {
		return fmt.Errorf("data: %s is not writable: %w", dir, err)
	}
	_ = f.Close()
	return os.Remove(f.Name())
}
