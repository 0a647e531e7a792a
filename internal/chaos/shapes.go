package chaos

import (
	"context"
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
)

// Shapes are digests of all facts, without wall-clock fields: those of the killed
// processes, and those of one process that received the same workload undisturbed.
type Shapes struct {
	Several string `json:"several"`
	One     string `json:"one"`
	// Lines are those of the two exports that only one of them has.
	Lines int `json:"lines"`
}

// CompareShapes compares the canonical exports of two memories that received the
// same workload in the same order, and adds the result to the verdict.
//
// They must be equal where each user has one publisher: then ordinals, the order of
// ranges and every decision follow from the messages, however the ranges are cut.
// Two publishers of one user each keep their own order only, and interleave at
// random.
func (v *Verdict) CompareShapes(ctx context.Context, w *Workload, several, one store.Exporter) error {
	out := &Shapes{}
	for _, side := range []struct {
		from   store.Exporter
		digest *string
	}{{several, &out.Several}, {one, &out.One}} {
		digest, err := store.Digest(ctx, side.from, memory.ExportContent)
		if err != nil {
			return fmt.Errorf("compare: %w", err)
		}
		*side.digest = digest
	}
	v.Shapes = out
	for _, user := range w.Users {
		lines := map[string]int{}
		for _, side := range []struct {
			from store.Exporter
			n    int
		}{{several, 1}, {one, -1}} {
			if err := count(ctx, side.from, user, lines, side.n); err != nil {
				return fmt.Errorf("compare: %w", err)
			}
		}
		for line, n := range lines {
			switch {
			case n > 0:
				v.find("shapes", user.Name, "only several processes know %s", line)
			case n < 0:
				v.find("shapes", user.Name, "only one process knows %s", line)
			default:
				continue
			}
			out.Lines++
		}
	}
	v.OK = v.OK && out.Several == out.One && out.Lines == 0
	return nil
}

// count adds n for each line of a user's export.
func count(ctx context.Context, from store.Exporter, user User, lines map[string]int, n int) error {
	snapshot, err := from.Snapshot(ctx, user.scope())
	if err != nil {
		return err
	}
	export, err := memory.Export(snapshot, memory.ExportContent)
	if err != nil {
		return err
	}
	for _, l := range export {
		lines[l.Kind+" "+string(l.JSON)] += n
	}
	return nil
}
