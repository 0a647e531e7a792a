package chaos

import (
	"context"
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
)

// Shapes are digests of what is known, without wall-clock fields: in the
// processes that were killed, and in one that was told the same and was not.
type Shapes struct {
	Several string `json:"several"`
	One     string `json:"one"`
	// Lines are those of the two exports that only one of them has.
	Lines int `json:"lines"`
}

// CompareShapes compares the canonical exports of two memories that were told the
// same workload in the same order, and adds what came of it to the verdict.
//
// Equality is due where each user speaks with one voice: then ordinals, ranges'
// order and with them every decision follow from what was said, however the ranges
// are cut. Of two voices of one user each keeps its own order only, and chance says
// how they meet.
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
