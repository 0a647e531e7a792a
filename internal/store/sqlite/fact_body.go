package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"

	"palimpsest/pkg/events"
)

// factBody is the stored form of a fact or a version, without the members that both
// tables have as columns.
type factBody struct {
	events.Fact
	ID        string `json:"id,omitempty"`
	Revision  uint64 `json:"revision,omitempty"`
	Hash      string `json:"hash,omitempty"`
	Subject   string `json:"subject,omitempty"`
	Predicate string `json:"predicate,omitempty"`
}

func encodeFact(f events.Fact) (string, error) {
	body, err := json.Marshal(factBody{Fact: f})
	if err != nil {
		return "", fmt.Errorf("encode fact %s: %w", f.ID, err)
	}
	return string(body), nil
}

// factRow is a fact as its row has it. The body that an earlier version wrote has the
// columns as well.
type factRow struct {
	kept events.Fact
	body rawText
}

// bodyOf lists the columns of a factRow in a table that a query names so.
func bodyOf(table string) string {
	return fmt.Sprintf("%[1]s.id, %[1]s.revision, %[1]s.hash, %[1]s.subject, %[1]s.predicate, %[1]s.body", table)
}

func (r *factRow) columns() []any {
	f := &r.kept
	return []any{&f.ID, &f.Revision, &f.Hash, &f.Subject, &f.Predicate, &r.body}
}

func (r *factRow) fact() (events.Fact, error) {
	var f events.Fact
	if err := jsonv2.Unmarshal(r.body, &f); err != nil {
		return f, fmt.Errorf("decode fact %s: %w", r.kept.ID, err)
	}
	c := &r.kept
	f.ID, f.Revision, f.Hash, f.Subject, f.Predicate = c.ID, c.Revision, c.Hash, c.Subject, c.Predicate
	return f, nil
}

// factBodies decodes the facts or versions of a query for the columns of bodyOf.
func factBodies(ctx context.Context, q querier, query string, args ...any) ([]events.Fact, error) {
	var list []events.Fact
	err := q.each(ctx, query, args, func(row scanner) error {
		var stored factRow
		if err := row.Scan(stored.columns()...); err != nil {
			return err
		}
		f, err := stored.fact()
		list = append(list, f)
		return err
	})
	return list, err
}
