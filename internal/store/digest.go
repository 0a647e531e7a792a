package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/pkg/scope"
)

// exportKinds are the kinds of the canonical export in its order.
var exportKinds = [...]string{"edge", "entity", "fact", "hold", "version", "watermark"}

// Digest is the SHA-256, in hex, of the canonical export of all projects. Two
// stores that were made by the same effects have the same one.
func Digest(ctx context.Context, from Exporter, mode memory.ExportMode) (string, error) {
	projects, err := from.Projects(ctx)
	if err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	// The export is ordered by kind before scope, and a store is read scope by
	// scope: of each kind it holds what it will have to hash.
	held := map[string][]byte{}
	for _, project := range projects {
		var failed error
		err := from.Scopes(ctx, scope.Selector{Project: project}, func(fact scope.Scope) bool {
			failed = hold(ctx, from, fact, mode, held)
			return failed == nil
		})
		if err := errors.Join(failed, err); err != nil {
			return "", fmt.Errorf("digest: %w", err)
		}
	}
	sum := sha256.New()
	for _, kind := range exportKinds {
		_, _ = sum.Write(held[kind]) // a hash does not fail
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// hold adds the lines of one fact scope to those of their kind.
func hold(ctx context.Context, from Exporter, fact scope.Scope, mode memory.ExportMode, held map[string][]byte) error {
	snapshot, err := from.Snapshot(ctx, fact)
	if err != nil {
		return err
	}
	lines, err := memory.Export(snapshot, mode)
	if err != nil {
		return err
	}
	for _, l := range lines {
		held[l.Kind] = append(append(held[l.Kind], l.JSON...), '\n')
	}
	return nil
}
