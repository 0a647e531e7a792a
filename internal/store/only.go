package store

import (
	"context"
	"errors"

	"palimpsest/internal/memory"
	"palimpsest/pkg/scope"
)

// Only returns the first of the rows that a backend found for one id, or [ErrNotFound]. It
// takes the results of a read.
func Only[R any](rows []R, err error) (row R, _ error) {
	switch {
	case err != nil:
		return row, err
	case len(rows) == 0:
		return row, ErrNotFound
	}
	return rows[0], nil
}

// VersionOf returns one version of a fact for a backend that keeps the current one apart:
// older finds the others.
func VersionOf(ctx context.Context, from FactReader, sel scope.Selector, at memory.Address, older func() (Fact, error)) (Fact, error) {
	current, err := from.Fact(ctx, sel, at.ID)
	if err == nil && current.Revision == at.Revision {
		return current, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Fact{}, err
	}
	return older()
}
