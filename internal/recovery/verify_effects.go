package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// committed is an effect as AUDIT has it.
type committed struct {
	sequence uint64
	mark     mark
	rows     int
	expiring int // of the rows
	logged   bool
}

// history is what AUDIT has of a scope, by revision.
type history map[uint64]committed

func effectMark(e events.EffectCommitted) (mark, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	_, _ = h.Write(raw) // a hash does not fail
	return mark(h.Sum64()), nil
}

// effects compares AUDIT with the revisions of the store's scopes, which were read
// before, and with the audit log.
func (v *verification) effects(ctx context.Context) error {
	extent, err := v.Sources.Effects.Extent(ctx)
	if err != nil {
		return err
	}
	histories, err := v.readAudit(ctx, extent)
	if err != nil {
		return fmt.Errorf("read AUDIT: %w", err)
	}
	if err := v.compareScopes(ctx, histories, extent); err != nil {
		return err
	}
	if err := v.compareLog(ctx, histories, extent); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	return nil
}

func (v *verification) readAudit(ctx context.Context, extent pipeline.Extent) (map[scope.Scope]history, error) {
	step, end := v.Part("effects", extent.Messages)
	defer end()
	histories := map[scope.Scope]history{}
	for e, err := range v.Journal.All(ctx, 0) {
		if err != nil {
			return nil, err
		}
		step(1)
		if s := e.Data.Scope; v.Born != nil && e.Data.Incarnation < v.Born(s.Project, s.User) {
			continue
		}
		m, err := effectMark(e.Data)
		if err != nil {
			return nil, err
		}
		of := histories[e.Data.Scope]
		if of == nil {
			of = history{}
			histories[e.Data.Scope] = of
		}
		c := committed{sequence: e.Sequence, mark: m, rows: len(e.Data.Applied)}
		for _, a := range e.Data.Applied {
			if v.Expires(a.Delta) {
				c.expiring++
			}
		}
		of[e.Data.Revision] = c
		v.out.Effects++
	}
	return histories, nil
}

// compareScopes compares where each scope stands in the store with the newest
// effect that AUDIT has of it.
func (v *verification) compareScopes(ctx context.Context, histories map[scope.Scope]history, extent pipeline.Extent) error {
	behind := map[scope.Scope]uint64{}
	for fact, of := range histories {
		newest := uint64(0)
		for revision, c := range of {
			newest = max(newest, c.sequence)
			if revision == v.scopes[fact].Revision && c.sequence != v.scopes[fact].AuditSeq {
				v.differ("scopes have another history in the store than in AUDIT", fmt.Sprintf("revision %d of %s", revision, fact))
			}
		}
		if at := v.scopes[fact].AuditSeq; at < newest {
			behind[fact] = newest
		}
	}
	for fact, state := range v.scopes {
		of := histories[fact]
		if _, held := of[state.Revision]; state.AuditSeq >= max(extent.First, 1) && !held {
			v.differ("scopes are ahead of AUDIT in the store", fmt.Sprintf("%s at message %d", fact, state.AuditSeq))
		}
	}
	err := v.await(ctx, func() (bool, error) {
		for fact, newest := range behind {
			state, err := v.Store.State(ctx, fact)
			if err != nil {
				return false, fmt.Errorf("read state: %w", err)
			}
			if state.AuditSeq >= newest {
				delete(behind, fact)
			}
		}
		return len(behind) > 0, nil
	})
	for fact, newest := range behind {
		v.differ("scopes are behind AUDIT in the store", fmt.Sprintf("%s, which AUDIT has up to message %d", fact, newest))
	}
	return err
}

// compareLog compares each effect and its rows.
func (v *verification) compareLog(ctx context.Context, histories map[scope.Scope]history, extent pipeline.Extent) error {
	newest := uint64(0)
	for _, of := range histories {
		for _, c := range of {
			newest = max(newest, c.sequence)
		}
	}
	err := v.await(ctx, func() (bool, error) { // the log is written a moment later
		last, err := v.Log.LastSequence(ctx)
		return last < newest, err
	})
	if err != nil {
		return err
	}
	if err := v.compareLogged(ctx, histories, extent); err != nil {
		return err
	}
	rows, err := v.countRows(ctx, histories)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		v.differ("rows of the audit log cannot be read", err.Error())
	}
	for fact, of := range histories {
		for revision, c := range of {
			which := fmt.Sprintf("revision %d of %s (message %d)", revision, fact, c.sequence)
			n := rows[fact][revision]
			switch {
			case !c.logged:
				v.differ("effects of AUDIT are not in the audit log", which)
			case err == nil && (n > c.rows || n < c.rows-c.expiring):
				v.differ("effects have other rows in the audit log than deltas", which)
			}
		}
	}
	return nil
}

func (v *verification) compareLogged(ctx context.Context, histories map[scope.Scope]history, extent pipeline.Extent) error {
	step, end := v.Part("audit log", uint64(len(v.scopes)))
	defer end()
	var facts []scope.Scope
	if err := v.Log.Heads(ctx, func(h audit.Head) error { facts = append(facts, h.Scope); return nil }); err != nil {
		return err
	}
	for _, fact := range facts {
		step(1)
		for e, err := range v.Log.Effects(ctx, fact, 0) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				v.differ("scopes of the audit log cannot be read", fmt.Sprintf("%s: %v", fact, err))
				break
			}
			which := fmt.Sprintf("revision %d of %s (message %d)", e.Data.Revision, fact, e.Sequence)
			c, held := histories[fact][e.Data.Revision]
			if !held {
				// Behind the end as it was asked for, it was committed meanwhile.
				if e.Sequence >= max(extent.First, 1) && e.Sequence <= extent.Last || v.lostBehind(ctx, e.Sequence, extent) {
					v.differ("effects of the audit log are not in AUDIT", which)
				}
				continue
			}
			m, err := effectMark(e.Data)
			if err != nil {
				return err
			}
			if m != c.mark || e.Sequence != c.sequence {
				v.differ("effects differ between AUDIT and the audit log", which)
			}
			c.logged = true
			histories[fact][e.Data.Revision] = c
		}
	}
	return nil
}

// lostBehind reports whether a sequence behind the end of AUDIT is still behind it.
func (v *verification) lostBehind(ctx context.Context, sequence uint64, extent pipeline.Extent) bool {
	if sequence <= extent.Last {
		return false
	}
	now, err := v.Sources.Effects.Extent(ctx)
	return err == nil && sequence > now.Last
}

// rowsPage is how many rows are read together.
const rowsPage = 2000

// countRows counts the rows of the audit log by scope and revision.
func (v *verification) countRows(ctx context.Context, histories map[scope.Scope]history) (map[scope.Scope]map[uint64]int, error) {
	projects := map[string]bool{}
	for fact := range histories {
		projects[fact.Project] = true
	}
	counts := map[scope.Scope]map[uint64]int{}
	step, end := v.Part("rows", 0)
	defer end()
	for project := range projects {
		for after := uint64(0); ; {
			page, err := v.Log.Records(ctx, scope.Selector{Project: project}, audit.Query{AfterSequence: after, Limit: rowsPage})
			if err != nil {
				return nil, err
			}
			whole := page
			if len(page) == rowsPage { // the last effect may go on behind the page
				last := page[len(page)-1].Sequence
				for len(whole) > 0 && whole[len(whole)-1].Sequence == last {
					whole = whole[:len(whole)-1]
				}
				if len(whole) == 0 {
					whole = page // an effect has fewer rows than a page
				}
			}
			for _, r := range whole {
				if counts[r.Scope] == nil {
					counts[r.Scope] = map[uint64]int{}
				}
				counts[r.Scope][r.Revision]++
				after = r.Sequence
			}
			v.out.Rows += len(whole)
			step(len(whole))
			if len(page) < rowsPage {
				break
			}
		}
	}
	return counts, nil
}
