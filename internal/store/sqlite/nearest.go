package sqlite

import (
	"context"
	"database/sql"
	"slices"
)

// Of the sketches that differ least, the most similar by estimate are compared exactly:
// for each hit asked for so many, and so many more. Of 1,000,000 texts of conversations
// that were made to be alike, these include the best 10 for 99 of 100.
const (
	comparedPerHit = 5
	fewestCompared = 500
	differPerEach  = 8 // sketches that differ least, for each that is compared
)

// nearest ranks the vectors of some places. It knows the similarity of all in slabs of
// vectors, and of those in slabs of sketches that differ least: as long as filters leave
// too few hits, it looks at more of them.
type nearest struct {
	*scan
	store   *Store
	ctx     context.Context //nolint:containedctx // of the search
	serving *serving
	table   table
	query   []float32
	limit   int

	far   []distant
	probe *probe
	after candidate // the last of the scan that was taken
	err   error
}

// distant is a slab of sketches without those that differ from the query in fewer bits
// than next, but for the rest of these.
type distant struct {
	*slab
	next int
	rest []int64
}

// rank implements [ranker].
func (s *nearest) rank(n int, _ candidate) []candidate {
	var list []candidate
	if s.probe == nil && len(s.far) > 0 {
		s.probe = newProbe(s.query)
		s.more()
	}
	for s.err == nil {
		list = append(list, s.scan.rank(n-len(list), s.after)...)
		if len(list) == n {
			s.after = list[n-1]
			break
		}
		if s.reset(); !s.more() {
			break
		}
	}
	return list
}

// more adds the next candidates of slabs of sketches to the scan. It returns false where
// no slab has any.
func (s *nearest) more() bool {
	if len(s.far) == 0 {
		return false
	}
	s.after = unbeaten
	n := fewestCompared + comparedPerHit*s.limit
	s.limit *= 2 // of the next
	left := s.far[:0]
	for _, f := range s.far {
		rows := f.rest
		if f.rest = nil; len(rows) == 0 {
			rows, f.next, s.unlike = f.near(s.probe, f.next, differPerEach*n, s.unlike)
			rows, f.rest = rows[:min(n, len(rows))], rows[min(n, len(rows)):]
		}
		if s.err = s.compare(f.key.scopeID, rows); s.err != nil {
			return false
		}
		if len(f.rest) > 0 || f.next <= len(s.probe.sketch)*wordBits {
			left = append(left, f)
		}
	}
	s.far = left
	return true
}

// compare adds rows with their similarity, read from the file.
func (s *nearest) compare(scopeID int64, rows []int64) error {
	vector := make([]float32, 0, len(s.query))
	for chunk := range slices.Chunk(rows, maxRowsRead) {
		err := s.store.reads.each(s.ctx, `SELECT row, vector FROM `+s.serving.vectors(s.table)+` WHERE scope_id = ? AND row IN (SELECT value FROM json_each(?))`,
			[]any{scopeID, jsonList(chunk)}, func(row scanner) error {
				var id int64
				var raw sql.RawBytes
				err := row.Scan(&id, &raw)
				if err == nil {
					vector, err = decodeVector(vector[:0], raw, len(s.query))
				}
				if err == nil {
					s.rows, s.scores = append(s.rows, id), append(s.scores, dot(s.query, vector))
				}
				return err
			})
		if err != nil {
			return err
		}
	}
	return nil
}
