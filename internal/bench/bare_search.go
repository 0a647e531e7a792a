package bench

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // a fact's hash, which keeps no secret
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// searched is the one scope that all facts belong to.
var searched = scope.Scope{Project: scope.DefaultProject, User: "bench"}

const (
	// effectFacts is how many facts one effect brings.
	effectFacts = 500
	// factWords is how many words a fact has besides its subject and verb.
	factWords = 8
	factsSeed = 7
)

// bareSearch is the simplest search for one user without filters and history: FTS5
// over the same terms, and vectors in one slice.
type bareSearch struct {
	db         *sql.DB
	match      *sql.Stmt
	dimensions int
	vectors    []float32
}

func openBareSearch(ctx context.Context, dir string) (*bareSearch, error) {
	db, err := openRaw(filepath.Join(dir, "bare.db"))
	if err != nil {
		return nil, err
	}
	b := &bareSearch{db: db}
	if _, err = db.ExecContext(ctx, `CREATE VIRTUAL TABLE bare USING fts5 (terms, tokenize = 'ascii')`); err == nil {
		b.match, err = db.PrepareContext(ctx, `SELECT rowid, terms FROM bare WHERE bare MATCH ? ORDER BY rank LIMIT ?`)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make bare index: %w", err), db.Close())
	}
	return b, nil
}

func (b *bareSearch) close() error { return errors.Join(b.match.Close(), b.db.Close()) }

// query returns the best rows that hold any of the words.
func (b *bareSearch) query(ctx context.Context, text string) ([]int64, error) {
	terms := lex.Terms(text)
	for i, t := range terms {
		terms[i] = `"` + t + `"`
	}
	list, err := b.match.QueryContext(ctx, strings.Join(terms, " OR "), searchLimit)
	if err != nil {
		return nil, fmt.Errorf("bare query: %w", err)
	}
	defer list.Close() //nolint:errcheck // list.Err says what went wrong
	rows := make([]int64, 0, searchLimit)
	for list.Next() {
		var row int64
		var terms string
		if err := list.Scan(&row, &terms); err != nil {
			return nil, fmt.Errorf("bare query: %w", err)
		}
		rows = append(rows, row)
	}
	return rows, list.Err()
}

// near is a row of the scan.
type near struct {
	row   int
	score float32
}

// scan returns the nearest rows, best first.
func (b *bareSearch) scan(query []float32) []near {
	best := make([]near, 0, searchLimit+1)
	for row := range len(b.vectors) / b.dimensions {
		score := inner(query, b.vectors[row*b.dimensions:(row+1)*b.dimensions])
		if len(best) == searchLimit && score <= best[searchLimit-1].score {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, score, func(n near, s float32) int { return cmp.Compare(s, n.score) })
		best = slices.Insert(best, at, near{row, score})
		best = best[:min(len(best), searchLimit)]
	}
	return best
}

// inner is the inner product, eight sums abreast so that none waits for another.
func inner(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		s0, s1, s2, s3 = s0+x[0]*y[0], s1+x[1]*y[1], s2+x[2]*y[2], s3+x[3]*y[3]
		s4, s5, s6, s7 = s4+x[4]*y[4], s5+x[5]*y[5], s6+x[6]*y[6], s7+x[7]*y[7]
		a, b = a[8:], b[8:]
	}
	for i := range min(len(a), len(b)) {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}

// fill gives both sides the same n facts.
func (b *bench) fill(ctx context.Context, s store.Store, bare *bareSearch, n int) error {
	speech := newSpeech(factsSeed)
	tx, err := bare.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to undo
	for from := 0; from < n; from += effectFacts {
		revision := uint64(from/effectFacts + 1)
		effect := factsEffect(speech, revision, from, min(effectFacts, n-from))
		texts := make([]string, len(effect.Facts))
		for i, f := range effect.Facts {
			texts[i] = f.Text
			if _, err := tx.ExecContext(ctx, `INSERT INTO bare (rowid, terms) VALUES (?, ?)`, from+i+1, strings.Join(lex.Terms(f.Text), " ")); err != nil {
				return fmt.Errorf("bare index: %w", err)
			}
		}
		values, err := b.Embedder.Embed(ctx, texts)
		if err != nil {
			return fmt.Errorf("embed: %w", err)
		}
		if err := put(ctx, s, effect, values); err != nil {
			return err
		}
		for _, v := range values {
			bare.dimensions = len(v)
			bare.vectors = append(bare.vectors, v...)
		}
	}
	return tx.Commit()
}

// factsEffect is n facts from number on, as a consolidation would commit them.
func factsEffect(s speech, revision uint64, number, n int) events.EffectCommitted {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(number) * time.Second)
	e := events.EffectCommitted{Header: events.Header{Scope: searched}, Revision: revision, Rule: turnRule, CommittedAt: at}
	for i := number; i < number+n; i++ {
		who := name(i % 300)
		text := who + " " + verbs[i%len(verbs)] + " " + s.words(factWords) + "."
		sum := md5.Sum([]byte(text)) //nolint:gosec // as above
		e.Facts = append(e.Facts, events.Fact{
			ID: factID(i), Revision: 1, Kind: events.FactSemantic, Category: "misc",
			Subject: who, Predicate: "thinks_of", Object: fmt.Sprintf("thing %d", i), Text: text, Hash: hex.EncodeToString(sum[:]),
			Cardinality: events.Many, Confidence: 0.9, DecayRate: 0.01,
			EventTime: at, CreatedAt: at.Add(time.Duration(i) * time.Millisecond), UpdatedAt: at, ValidFrom: at,
			SourceType: events.SourceConversation, SourceRole: events.RoleUser, SessionIDs: []string{"s1"},
			SourceEpisodeIDs: []string{fmt.Sprintf("episode-%07d", i)}, EvidenceQuote: text, RuleID: turnRule,
		})
	}
	return e
}

func factID(number int) string { return fmt.Sprintf("fact-%07d", number) }

// put applies an effect and gives its facts their vectors.
func put(ctx context.Context, s store.Store, e events.EffectCommitted, values [][]float32) error {
	if err := s.Apply(ctx, e, e.Revision); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	vectors := make([]store.Vector, len(values))
	for i, v := range values {
		f := e.Facts[i]
		vectors[i] = store.Vector{
			Ref:    store.VectorRef{Target: store.Facts, Scope: searched, ID: f.ID, Revision: f.Revision},
			Values: v,
		}
	}
	if err := s.PutVectors(ctx, vectors); err != nil {
		return fmt.Errorf("put vectors: %w", err)
	}
	return nil
}
