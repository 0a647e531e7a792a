package sqlite

import (
	"fmt"
	"strconv"
	"strings"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
)

// A document is named in the text index by its row and its length in terms, as
// Lucene keeps its norms: BM25 needs no further lookup for a hit. Lengths from
// maxLength on count as that.
const (
	lengthBits = 10
	maxLength  = 1<<lengthBits - 1
)

func docID(row int64, length int) int64 { return row<<lengthBits | int64(min(length, maxLength)) }

func docRow(doc int64) int64 { return doc >> lengthBits }

// token is how a term of a scope stands in the index. Terms consist of letters,
// digits and marks (see lex), all of which the ascii tokenizer takes as one
// token; the scope's id in hex ends at the first z.
func token(scopeID int64, term string) string {
	return strconv.FormatInt(scopeID, 16) + "z" + term
}

func tokens(scopeID int64, terms []string) string {
	prefix := strconv.FormatInt(scopeID, 16) + "z"
	var b strings.Builder
	for _, t := range terms {
		b.WriteString(prefix)
		b.WriteString(t)
		b.WriteByte(' ')
	}
	return b.String()
}

// indexTerms are those of a document.
func indexTerms(text string) []string { return lex.Terms(text) }

// table names what differs between the targets of a search.
type table struct {
	index, postings, vectors string
	target                   store.Target
}

var (
	episodeTable = table{"episode_text", "episode_postings", "episode_vectors", store.Episodes}
	factTable    = table{"fact_text", "fact_postings", "fact_vectors", store.Facts}
)

func tableOf(t store.Target) (table, error) {
	switch t {
	case store.Episodes:
		return episodeTable, nil
	case store.Facts:
		return factTable, nil
	}
	return table{}, fmt.Errorf("sqlite: search: target %d is neither facts nor episodes", t)
}

func (w *writer) indexText(t table, c *corpus, scopeID, row int64, terms []string) error {
	c.docs++
	c.terms += int64(len(terms))
	if len(terms) == 0 {
		return nil
	}
	w.then(func() { w.store.shelve(t, scopeID, row, nil, terms) })
	err := w.exec(`INSERT INTO `+t.index+` (rowid, terms) VALUES (?, ?)`, docID(row, len(terms)), tokens(scopeID, terms))
	if err != nil {
		return fmt.Errorf("index text: %w", err)
	}
	return nil
}

// unindexText takes out a document that was indexed under length terms.
func (w *writer) unindexText(t table, c *corpus, scopeID, row int64, length int, terms []string) error {
	c.docs--
	c.terms -= int64(length)
	w.then(func() { w.store.shelve(t, scopeID, row, terms, nil) })
	if err := w.exec(`DELETE FROM `+t.index+` WHERE rowid = ?`, docID(row, length)); err != nil {
		return fmt.Errorf("unindex text: %w", err)
	}
	return nil
}

// rawText is a column's text; nil where it is null.
type rawText []byte

// Scan implements [sql.Scanner].
func (r *rawText) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*r = nil
	case string:
		*r = []byte(v)
	case []byte:
		*r = append([]byte(nil), v...)
	default:
		return fmt.Errorf("column holds %T, not text", v)
	}
	return nil
}
