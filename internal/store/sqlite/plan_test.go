package sqlite

import (
	"context"
	"strings"
	"sync"
	"testing"
)

// planCheck fails on a read whose cost grows with the rows of the store, or with
// all rows that a scope has of the large tables. It looks at each statement once.
type planCheck struct {
	mu   sync.Mutex
	seen map[string]bool
}

// wholeScope lists the reads that ask for everything in a scope or in the store.
var wholeScope = []string{
	`SELECT rule FROM watched`,
	`SELECT DISTINCT project FROM scopes`,
	`SELECT row, vector FROM `,
	`SELECT (SELECT user_version`,
	`SELECT count(*) FROM vector_queue`,                               // of those two, a part
	`SELECT q.target`,                                                 // pages of the queue
	`SELECT s.project, s.user, s.agent, p.session, (SELECT min(e.ts)`, // the sessions of a user
}

func (p *planCheck) check(t *testing.T, s *Store) {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	for _, query := range s.reads.statements() {
		if p.seen[query] {
			continue
		}
		p.seen[query] = true
		for _, detail := range planOf(t, s, query) {
			if !broad(query, detail) {
				continue
			}
			t.Errorf("%s\n  %s", strings.Join(strings.Fields(query), " "), detail)
		}
	}
}

func (r *reads) statements() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []string
	for query := range r.by {
		all = append(all, query)
	}
	return all
}

func planOf(t *testing.T, s *Store, query string) (plan []string) {
	args := make([]any, strings.Count(query, "?"))
	for i := range args {
		args[i] = 1
	}
	rows, err := s.reads.db.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Error(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
	return plan
}

// broad reports whether a step of a plan reads a table, or all that a scope has
// of a table of many rows.
func broad(query, detail string) bool {
	for _, known := range wholeScope {
		if strings.HasPrefix(strings.Join(strings.Fields(query), " "), known) {
			return false
		}
	}
	if strings.HasPrefix(detail, "SCAN ") {
		return !strings.Contains(detail, "VIRTUAL TABLE") && !strings.Contains(detail, "CONSTANT ROW") && detail != "SCAN w" && !strings.HasPrefix(detail, "SCAN (subquery")
	}
	indexed := strings.HasPrefix(detail, "SEARCH e ") || strings.HasPrefix(detail, "SEARCH f ") || strings.HasPrefix(detail, "SEARCH v ")
	return indexed && strings.HasSuffix(detail, "(scope_id=?)") ||
		strings.HasPrefix(detail, "SEARCH p ") && strings.HasSuffix(detail, "sqlite_autoindex_sessions_1 (scope_id=?)")
}
