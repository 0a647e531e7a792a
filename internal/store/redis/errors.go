package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/store"
)

// errPartial: the server stopped a search at its timeout and answered with what
// it had, which looks like a whole answer but for a warning.
var errPartial = errors.New("the search was cut short by its timeout")

// errNoSearch: the server lacks the module that searches.
var errNoSearch = errors.New("the server has no Query Engine (RediSearch), which Redis 8 has")

// explain brings an error of the driver to the contract's.
func explain(err error) error {
	if err == nil || errors.Is(err, goredis.Nil) {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrClosed) {
		return err
	}
	text := err.Error()
	switch {
	case isRefused(err):
		return err // those who asked look why
	case strings.HasPrefix(text, "OOM "):
		err = fmt.Errorf("%w: %w", store.ErrFull, err)
	case isMissingIndex(err):
		err = fmt.Errorf("%w: the index is gone: %w", store.ErrDamaged, err)
	case isAway(text):
		err = fmt.Errorf("%w: %w", store.ErrAway, err)
	case strings.Contains(text, "Timeout limit was reached"):
		err = fmt.Errorf("%w: %w", errPartial, err)
	case strings.Contains(text, "unknown command") && strings.Contains(text, "FT."):
		return errNoSearch
	case errors.Is(err, goredis.ErrClosed):
		return store.ErrClosed
	}
	return fmt.Errorf("redis: %w", err)
}

// isAway recognizes the errors of a server that is loading its data, has lost its
// master, or is being made a replica.
func isAway(text string) bool {
	for _, begin := range []string{"LOADING ", "MASTERDOWN ", "CLUSTERDOWN ", "READONLY ", "TRYAGAIN ", "ERRCLUSTER "} {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// isMissingIndex knows both texts: a search says one, FT.INFO and FT.DROPINDEX
// the other.
func isMissingIndex(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "no such index") || strings.Contains(text, "unknown index name")
}
