package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
)

// spaces is the recorded state of the vector spaces. Each is kept in one of two sets
// of tables.
type spaces struct {
	// Last is the highest ID that was given to a space.
	Last   uint64         `json:"last"`
	Served space          `json:"served"`
	Next   *buildingSpace `json:"next,omitempty"`
	// Left says that the tables that no space uses may hold rows.
	Left bool `json:"left,omitempty"`
}

type space struct {
	ID       uint64     `json:"id"`
	Embedder embed.Info `json:"embedder"`
	Tables   int        `json:"tables"` // 0 or 1
}

// buildingSpace also records which of the rows that existed at its beginning are in
// its queue.
type buildingSpace struct {
	space
	Facts    span `json:"facts"`
	Episodes span `json:"episodes"`
}

// span are the rows above At up to To.
type span struct {
	At int64 `json:"at"`
	To int64 `json:"to"`
}

func (s span) left() int64 { return s.To - s.At }

// suffixes tell the two sets of tables apart.
var suffixes = [2]string{"", "_2"}

func (s space) queue() string { return "vector_queue" + suffixes[s.Tables] }

func (s space) vectors(t table) string { return t.vectors + suffixes[s.Tables] }

func (s space) public() store.Space { return store.Space{ID: s.ID, Embedder: s.Embedder} }

// all are the space that is served and the one under construction.
func (s *spaces) all() []space {
	if s.Next == nil {
		return []space{s.Served}
	}
	return []space{s.Served, s.Next.space}
}

// find returns the space of an ID, of which 0 is the served one.
func (s *spaces) find(id uint64) (space, bool) {
	for _, sp := range s.all() {
		if id == sp.ID || id == 0 {
			return sp, true
		}
	}
	return space{}, false
}

// serving is what vector searches go through. It is another for another space.
type serving struct {
	space
	vectorCache *vectorCache
}

// Spaces implements [store.VectorSpaces].
func (s *Store) Spaces() store.Spaces {
	sp := s.spaces.Load()
	out := store.Spaces{Served: sp.Served.public()}
	if sp.Next != nil {
		next := sp.Next.public()
		out.Next = &next
	}
	return out
}

// BuildSpace implements [store.VectorSpaces].
func (s *Store) BuildSpace(ctx context.Context, embedder embed.Info) error {
	err := s.write(ctx, func(w *writer) error {
		sp := *w.spaces()
		switch {
		case sp.Next != nil && sp.Next.Embedder.Same(embedder):
			return nil
		case sp.Served.Embedder.Same(embedder):
			if sp.Next == nil {
				return nil
			}
			sp.Next, sp.Left = nil, true
			return w.setSpaces(sp)
		}
		var vectors bool
		if _, err := w.one(`SELECT EXISTS (SELECT 1 FROM `+sp.Served.vectors(episodeTable)+`) OR EXISTS (SELECT 1 FROM `+sp.Served.vectors(factTable)+`)`,
			nil, &vectors); err != nil {
			return err
		}
		sp.Last++
		if !vectors {
			return w.adopt(sp, embedder)
		}
		return w.beginSpace(sp, embedder)
	})
	if err != nil {
		return fmt.Errorf("build a vector space: %w", err)
	}
	return nil
}

// adopt serves the space of an embedder in the place of one without vectors.
func (w *writer) adopt(sp spaces, embedder embed.Info) error {
	sp.Served.ID, sp.Served.Embedder = sp.Last, embedder
	sp.Left, sp.Next = sp.Left || sp.Next != nil, nil
	if err := w.exec(`UPDATE ` + sp.Served.queue() + ` SET refused = NULL WHERE refused IS NOT NULL`); err != nil {
		return err
	}
	return w.setSpaces(sp)
}

// beginSpace begins a space in the other tables. Its queue is filled as it is read.
func (w *writer) beginSpace(sp spaces, embedder embed.Info) error {
	next := &buildingSpace{space: space{ID: sp.Last, Embedder: embedder, Tables: 1 - sp.Served.Tables}}
	if err := w.clearSpace(next.space); err != nil {
		return err
	}
	if _, err := w.one(`SELECT coalesce(max(row), 0) FROM episodes`, nil, &next.Episodes.To); err != nil {
		return err
	}
	if _, err := w.one(`SELECT coalesce(max(row), 0) FROM facts`, nil, &next.Facts.To); err != nil {
		return err
	}
	sp.Next, sp.Left = next, false
	return w.setSpaces(sp)
}

// clearSpace empties tables. SQLite drops their pages without a look at the rows.
func (w *writer) clearSpace(sp space) error {
	for _, name := range []string{sp.vectors(episodeTable), sp.vectors(factTable), sp.queue()} {
		if err := w.exec(`DELETE FROM ` + name); err != nil {
			return fmt.Errorf("drop vectors: %w", err)
		}
	}
	return nil
}

// MoveSpaces implements [store.VectorSpaces]. It clears the vectors of the old space
// one step after the switch, so that no search that still uses the old space reads
// cleared rows.
func (s *Store) MoveSpaces(ctx context.Context) (done bool, err error) {
	if sp := s.spaces.Load(); sp.Next == nil && !sp.Left {
		return true, nil
	}
	err = s.write(ctx, func(w *writer) error {
		sp := *w.spaces()
		done = sp.Next == nil
		switch {
		case sp.Next != nil:
			if sp.Next.Facts.left() > 0 || sp.Next.Episodes.left() > 0 {
				return nil
			}
			var pending bool
			if _, err := w.one(`SELECT EXISTS (SELECT 1 FROM `+sp.Next.queue()+` WHERE refused IS NULL)`, nil, &pending); err != nil || pending {
				return err
			}
			sp.Served, sp.Next, sp.Left = sp.Next.space, nil, true
		case sp.Left:
			if err := w.clearSpace(space{Tables: 1 - sp.Served.Tables}); err != nil {
				return err
			}
			sp.Left = false
		default:
			return nil
		}
		return w.setSpaces(sp)
	})
	if err != nil {
		return false, fmt.Errorf("move vector spaces: %w", err)
	}
	return done, nil
}

// fillRows is how many rows are looked at in one step that fills the queue of a space
// under construction.
const fillRows = 4096

// fill adds some of the rows that were there when the space was begun to its queue.
// It reports whether there may be more.
func (s *Store) fill(ctx context.Context, id uint64) (more bool, err error) {
	if sp := s.spaces.Load(); sp.Next == nil || sp.Next.ID != id || sp.Next.Facts.left() == 0 && sp.Next.Episodes.left() == 0 {
		return false, nil
	}
	err = s.write(ctx, func(w *writer) error {
		sp := *w.spaces()
		if more = false; sp.Next == nil || sp.Next.ID != id {
			return nil
		}
		next := *sp.Next
		sp.Next, more = &next, true
		if err := w.fillQueue(next.space, store.Facts, &next.Facts, `SELECT row, scope_id FROM facts`); err != nil {
			return err
		}
		if err := w.fillQueue(next.space, store.Episodes, &next.Episodes, `SELECT row, scope_id FROM episodes WHERE mode <> 'incognito'`); err != nil {
			return err
		}
		return w.setSpaces(sp)
	})
	return more, err
}

// fillQueue adds the next rows of a span to a queue.
func (w *writer) fillQueue(sp space, target store.Target, rows *span, from string) error {
	above := rows.At
	rows.At = min(above+fillRows, rows.To)
	return w.exec(`INSERT OR IGNORE INTO `+sp.queue()+` (target, row, project)
	  SELECT ?, r.row, s.project FROM (`+from+`) r JOIN scopes s ON s.id = r.scope_id WHERE r.row > ? AND r.row <= ? ORDER BY r.row`,
		target, above, rows.At)
}

// spaces are those after all writes of the transaction so far.
func (w *writer) spaces() *spaces {
	if w.rows.spaces == nil {
		w.rows.spaces = w.store.spaces.Load()
	}
	return w.rows.spaces
}

func (w *writer) setSpaces(sp spaces) error {
	raw, err := json.Marshal(sp)
	if err != nil {
		return err
	}
	if err := w.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('spaces', ?)`, string(raw)); err != nil {
		return fmt.Errorf("record vector spaces: %w", err)
	}
	w.rows.spaces = &sp
	w.then(func() { w.store.serve(&sp) })
	return nil
}

// serve makes searches go through the space that is served by now.
func (s *Store) serve(sp *spaces) {
	s.spaces.Store(sp)
	if now := s.serving.Load(); now == nil || now.ID != sp.Served.ID || now.Embedder.Dimensions != sp.Served.Embedder.Dimensions {
		s.serving.Store(&serving{sp.Served, newVectorCache(s.cfg.VectorMemory, s.loads)})
	}
}

// rowReader is a connection or a pool of them.
type rowReader interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readSpaces returns what is recorded. A file of an earlier version, or without a
// vector, has one space.
func readSpaces(ctx context.Context, conn rowReader) (*spaces, error) {
	get := func(name string, into any) (bool, error) {
		var raw string
		err := conn.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = ?`, name).Scan(&raw)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		if err == nil {
			err = json.Unmarshal([]byte(raw), into)
		}
		if err != nil {
			return false, fmt.Errorf("sqlite: read %s: %w", name, err)
		}
		return true, nil
	}
	sp := &spaces{Last: 1, Served: space{ID: 1}}
	if known, err := get("spaces", sp); known || err != nil {
		return sp, err
	}
	if _, err := get("embedder", &sp.Served.Embedder); err != nil {
		return nil, err
	}
	_, err := get("dimensions", &sp.Served.Embedder.Dimensions)
	return sp, err
}

// openSpaces makes the spaces known to the store. One that knows no embedder takes
// that of the configuration.
func (s *Store) openSpaces(ctx context.Context, conn *sql.Conn) error {
	sp, err := readSpaces(ctx, conn)
	if err != nil {
		return err
	}
	if sp.Served.Embedder == (embed.Info{}) && s.cfg.Embedder != (embed.Info{}) {
		sp.Served.Embedder = s.cfg.Embedder
		raw, err := json.Marshal(sp)
		if err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, `INSERT OR REPLACE INTO meta (name, value) VALUES ('spaces', ?)`, string(raw)); err != nil {
			return fmt.Errorf("sqlite: record the embedder: %w", err)
		}
	}
	s.serve(sp)
	return nil
}
