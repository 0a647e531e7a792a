package bare

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the bare engine

	"palimpsest/internal/bench/usage"
)

// rowBatch is how many rows one transaction of the bare engine inserts.
const rowBatch = 1_000

// Rows holds the memory store after a flood: the schema, and every row that storing
// an episode makes, ready to be inserted again.
type Rows struct {
	schema   []string
	once     []inserts // of the scopes and their sessions
	episodes [][]any
	columns  string // of an episode
	texts    map[int64]indexed
}

// Len returns how many episodes the rows hold.
func (r *Rows) Len() int { return len(r.episodes) }

// indexed is a document of the text index.
type indexed struct {
	doc   int64
	terms string
}

// inserts is rows for one table.
type inserts struct {
	table, columns string
	rows           [][]any
}

// openFile opens a SQLite file as the memory store does: pages, log and cache alike.
func openFile(path string) (*sql.DB, error) {
	q := url.Values{"_pragma": {
		"page_size(8192)", "journal_mode(wal)", "synchronous(normal)", "wal_autocheckpoint(2000)",
		"cache_size(-65536)", "temp_store(memory)", "busy_timeout(10000)",
	}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open bare SQLite: %w", err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// ReadRows reads the schema and the rows of a memory store that no process has open.
func ReadRows(ctx context.Context, path string) (_ *Rows, err error) {
	db, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	r := &Rows{texts: map[int64]indexed{}}
	schema, _, err := readAll(ctx, db, `SELECT s.sql FROM sqlite_schema s LEFT JOIN pragma_table_list l USING (name)
	  WHERE s.sql IS NOT NULL AND coalesce(l.type, '') <> 'shadow' ORDER BY s.rowid`)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	for _, s := range schema {
		r.schema = append(r.schema, fmt.Sprint(s[0]))
	}
	for _, table := range []string{"scopes", "sessions", "watched", "pending"} {
		in := inserts{table: table}
		if in.rows, in.columns, err = readAll(ctx, db, "SELECT * FROM "+table); err != nil {
			return nil, fmt.Errorf("read %s: %w", table, err)
		}
		r.once = append(r.once, in)
	}
	if r.episodes, r.columns, err = readAll(ctx, db, "SELECT * FROM episodes ORDER BY row"); err != nil {
		return nil, fmt.Errorf("read episodes: %w", err)
	}
	return r, r.readTexts(ctx, db)
}

// readTexts puts the documents of the text index together again. Its rowids are
// the episode's row, shifted by the bits of a length.
func (r *Rows) readTexts(ctx context.Context, db *sql.DB) error {
	list, _, err := readAll(ctx, db, `SELECT doc, group_concat(term, ' ') FROM
	  (SELECT doc, term FROM episode_postings ORDER BY doc, offset) GROUP BY doc`)
	if err != nil {
		return fmt.Errorf("read text index: %w", err)
	}
	for _, cells := range list {
		doc, _ := cells[0].(int64)
		terms, _ := cells[1].(string)
		const lengthBits = 10
		r.texts[doc>>lengthBits] = indexed{doc, terms}
	}
	if len(r.texts) != len(r.episodes) {
		return fmt.Errorf("read text index: %d documents of %d episodes", len(r.texts), len(r.episodes))
	}
	return nil
}

// readAll returns every row and the names of the columns.
func readAll(ctx context.Context, db *sql.DB, query string) (all [][]any, columns string, err error) {
	list, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, "", err
	}
	defer list.Close() //nolint:errcheck // list.Err says what went wrong
	names, err := list.Columns()
	if err != nil {
		return nil, "", err
	}
	for list.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := list.Scan(into...); err != nil {
			return nil, "", err
		}
		all = append(all, row)
	}
	return all, strings.Join(names, ", "), list.Err()
}

// Insert writes the rows to a new file. It is one writer that checks nothing and
// prepares each statement once. It returns the elapsed time and the processor time,
// both without the creation of the schema.
func (r *Rows) Insert(ctx context.Context, path string) (took, spent time.Duration, err error) {
	db, err := openFile(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, s := range r.schema {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return 0, 0, fmt.Errorf("create schema: %w", err)
		}
	}
	began, before := time.Now(), usage.Own()
	for _, in := range r.once {
		if err := in.insert(ctx, db); err != nil {
			return 0, 0, fmt.Errorf("insert into %s: %w", in.table, err)
		}
	}
	if err := r.insertEpisodes(ctx, db); err != nil {
		return 0, 0, fmt.Errorf("insert episodes: %w", err)
	}
	return time.Since(began), usage.Own() - before, nil
}

func (in inserts) insert(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to undo
	st, err := tx.PrepareContext(ctx, insertion(in.table, in.columns))
	if err != nil {
		return err
	}
	defer st.Close() //nolint:errcheck // goes with the file
	for _, row := range in.rows {
		if _, err := st.ExecContext(ctx, row...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func insertion(table, columns string) string {
	n := strings.Count(columns, ",") + 1
	return "INSERT INTO " + table + " (" + columns + ") VALUES (" + strings.TrimSuffix(strings.Repeat("?, ", n), ", ") + ")"
}

// insertEpisodes inserts the rows of each episode: its own, its document in the
// text index, its place in the queue for a vector.
func (r *Rows) insertEpisodes(ctx context.Context, db *sql.DB) error {
	var st [3]*sql.Stmt
	for i, query := range []string{
		insertion("episodes", r.columns),
		`INSERT INTO episode_text (rowid, terms) VALUES (?, ?)`,
		`INSERT INTO vector_queue (target, row, project) VALUES (2, ?, 'default')`,
	} {
		var err error
		if st[i], err = db.PrepareContext(ctx, query); err != nil {
			return err
		}
		defer st[i].Close() //nolint:errcheck // goes with the file
	}
	for from := 0; from < len(r.episodes); from += rowBatch {
		if err := r.insertBatch(ctx, db, st, r.episodes[from:min(from+rowBatch, len(r.episodes))]); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rows) insertBatch(ctx context.Context, db *sql.DB, st [3]*sql.Stmt, batch [][]any) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to undo
	for i := range st {
		st[i] = tx.StmtContext(ctx, st[i])
		defer st[i].Close() //nolint:errcheck // goes with the file
	}
	for _, cells := range batch {
		id, _ := cells[0].(int64)
		text := r.texts[id]
		if _, err := st[0].ExecContext(ctx, cells...); err != nil {
			return err
		}
		if _, err := st[1].ExecContext(ctx, text.doc, text.terms); err != nil {
			return err
		}
		if _, err := st[2].ExecContext(ctx, id); err != nil {
			return err
		}
	}
	return tx.Commit()
}
