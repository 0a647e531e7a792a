package chaos

import (
	"context"
	"encoding/json"
	"fmt"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// row names one record of the audit log.
type row struct {
	scope    scope.Scope
	revision uint64
	index    int
}

func (r row) String() string {
	return fmt.Sprintf("%s revision %d delta %d", r.scope, r.revision, r.index)
}

// trail is what AUDIT holds, by what the rest is compared with.
type trail struct {
	revision map[scope.Scope]uint64            // the newest
	marks    map[scope.Scope]map[string]uint64 // watermarks
	deltas   map[string]row                    // by id
	rows     map[row]string                    // as JSON
	effects  map[scope.Scope]map[uint64]string // as JSON, by revision
}

// effects checks AUDIT by itself, then the audit log and the store against it.
func (j *judge) effects(ctx context.Context) error {
	t := trail{
		revision: map[scope.Scope]uint64{}, marks: map[scope.Scope]map[string]uint64{},
		deltas: map[string]row{}, rows: map[row]string{}, effects: map[scope.Scope]map[uint64]string{},
	}
	for e, err := range j.evidence.Journal.Read(ctx, scope.Selector{Project: scope.DefaultProject}, 0) {
		if err != nil {
			if ctx.Err() == nil {
				j.count(&j.verdict.RevisionGaps, "revisions", "AUDIT", "%v", err)
				break
			}
			return err
		}
		if err := j.follow(&t, e); err != nil {
			return err
		}
	}
	for _, user := range j.workload.Users {
		if err := j.scope(ctx, &t, user.scope()); err != nil {
			return err
		}
	}
	j.verdict.Checked.Scopes, j.verdict.Checked.Deltas = len(t.revision), len(t.rows)
	return j.rows(ctx, &t)
}

// follow takes the next effect of AUDIT.
func (j *judge) follow(t *trail, e events.Event[events.EffectCommitted]) error {
	v, s := &j.verdict, e.Data.Scope
	where := fmt.Sprintf("%s revision %d", s, e.Data.Revision)
	v.Checked.Effects++
	last := t.revision[s]
	if e.Data.Revision <= last {
		j.count(&v.Duplicated, "revisions", where, "follows revision %d", last)
		return nil
	}
	for missing := last + 1; missing < e.Data.Revision; missing++ {
		j.count(&v.RevisionGaps, "revisions", where, "AUDIT does not hold revision %d", missing)
	}
	t.revision[s] = e.Data.Revision
	j.covered(t, where, e.Data)
	for _, r := range audit.Records(e) {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		at := row{r.Scope, r.Revision, r.Index}
		t.rows[at] = string(text)
		if before, twice := t.deltas[r.DeltaID]; twice {
			j.count(&v.Duplicated, "deltas", at.String(), "delta %s was committed as %s", r.DeltaID, before)
		}
		t.deltas[r.DeltaID] = at
	}
	text, err := json.Marshal(e.Data)
	if t.effects[s] == nil {
		t.effects[s] = map[uint64]string{}
	}
	t.effects[s][e.Data.Revision] = string(text)
	return err
}

// covered checks that the ranges of a rule follow each other: an episode between
// two is lost to the rule, one in two was consolidated twice.
func (j *judge) covered(t *trail, where string, e events.EffectCommitted) {
	if e.Range == nil || e.Watermark == nil {
		return
	}
	marks := t.marks[e.Scope]
	if marks == nil {
		marks = map[string]uint64{}
		t.marks[e.Scope] = marks
	}
	switch mark := marks[e.Rule]; {
	case e.Range.From > mark:
		j.count(&j.verdict.Lost, "ranges", where, "%s skips the episodes behind %d up to %d", e.Rule, mark, e.Range.From)
	case e.Range.From < mark:
		j.count(&j.verdict.Duplicated, "ranges", where, "%s begins behind %d again, at %d", e.Rule, e.Range.From, mark)
	}
	marks[e.Rule] = *e.Watermark
}

// scope compares one scope of the store, and the effects that the log keeps
// whole, with AUDIT.
func (j *judge) scope(ctx context.Context, t *trail, s scope.Scope) error {
	v := &j.verdict
	state, err := j.evidence.Store.State(ctx, s)
	if err != nil {
		return err
	}
	if newest := t.revision[s]; state.Revision != newest {
		j.count(&v.RevisionGaps, "revisions", s.String(), "the store is at revision %d, AUDIT at %d", state.Revision, newest)
	}
	left := t.effects[s]
	for e, err := range j.evidence.Log.Effects(ctx, s, 0) {
		if err != nil {
			return j.unreadable(ctx, err)
		}
		text, err := json.Marshal(e.Data)
		if err != nil {
			return err
		}
		revision := e.Data.Revision
		if left[revision] != string(text) {
			j.count(&v.AuditOff, "audit log", s.String(), "keeps another revision %d than AUDIT", revision)
		}
		delete(left, revision)
	}
	for revision := range left {
		j.count(&v.AuditOff, "audit log", s.String(), "does not keep revision %d", revision)
	}
	return nil
}

// rows compares the rows of the audit log with the deltas in AUDIT.
func (j *judge) rows(ctx context.Context, t *trail) error {
	v := &j.verdict
	q := audit.Query{Limit: audit.MaxRecords}
	for {
		list, err := j.evidence.Log.Records(ctx, scope.Selector{Project: scope.DefaultProject}, q)
		if err != nil {
			return j.unreadable(ctx, err)
		}
		full := len(list) == q.Limit
		for _, r := range whole(list, full) {
			text, err := json.Marshal(r)
			if err != nil {
				return err
			}
			v.Checked.AuditRows++
			at := row{r.Scope, r.Revision, r.Index}
			if t.rows[at] != string(text) {
				j.count(&v.AuditOff, "audit log", at.String(), "the row is not what AUDIT says")
			}
			delete(t.rows, at)
			q.AfterSequence = r.Sequence
		}
		if !full {
			break
		}
	}
	for at := range t.rows {
		j.count(&v.AuditOff, "audit log", at.String(), "has no row")
	}
	return nil
}

// unreadable counts what the audit log cannot answer: a row whose effect is gone
// is an error of its.
func (j *judge) unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	j.count(&j.verdict.AuditOff, "audit log", "the log", "%v", err)
	return nil
}

// whole leaves out the last effect of a full page, which may be cut: a query
// goes on behind whole effects.
func whole(list []audit.Record, full bool) []audit.Record {
	if !full {
		return list
	}
	end := len(list)
	for end > 0 && list[end-1].Sequence == list[len(list)-1].Sequence {
		end--
	}
	return list[:end]
}
