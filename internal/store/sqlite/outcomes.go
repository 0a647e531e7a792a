package sqlite

import (
	"bytes"
	"compress/flate"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"sync"

	"palimpsest/pkg/events"
)

// Outcomes are written for each episode and read for few. Those of one effect
// share most of their text, so they are stored together and compressed.

// maxSet bounds the outcomes that are kept together.
const maxSet = 64

// outcomeSet is a row of outcome_sets before it is the writer's turn.
type outcomeSet struct {
	hashes []int64
	body   []byte
}

// packOutcomes divides the outcomes of an effect into sets.
func packOutcomes(effect events.EffectCommitted) ([]outcomeSet, error) {
	var sets []outcomeSet
	for part := range slices.Chunk(effect.Outcomes, maxSet) {
		var set outcomeSet
		for _, o := range part {
			if h := outcomeHash(effect.Scope.Project, o.CorrelationID); !slices.Contains(set.hashes, h) {
				set.hashes = append(set.hashes, h)
			}
		}
		raw, err := json.Marshal(part)
		if err == nil {
			set.body, err = deflate(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("sqlite: encode outcomes: %w", err)
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// outcomeHash is the key of a set. Another outcome may have the same.
func outcomeHash(project, correlation string) int64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, project)
	_, _ = h.Write([]byte{0})
	_, _ = io.WriteString(h, correlation)
	return int64(h.Sum64())
}

func (w *writer) putOutcomes(row *scopeRow, effect events.EffectCommitted, sets []outcomeSet) error {
	expires := micros(effect.CommittedAt.Add(outcomeLife))
	for _, set := range sets {
		res, err := w.run(`INSERT INTO outcome_sets (scope_id, revision, expires, body) VALUES (?, ?, ?, ?)`,
			row.id, effect.Revision, expires, set.body)
		if err != nil {
			return fmt.Errorf("put outcomes: %w", err)
		}
		id, err := res.LastInsertId()
		if err != nil {
			return fmt.Errorf("put outcomes: %w", err)
		}
		for _, h := range set.hashes {
			if err := w.exec(`INSERT INTO outcome_keys (hash, set_row) VALUES (?, ?)`, h, id); err != nil {
				return fmt.Errorf("put outcomes: %w", err)
			}
		}
	}
	return nil
}

// sweepOutcomes deletes up to limit sets that have expired.
func (w *writer) sweepOutcomes(now int64, limit int) error {
	const expired = `(SELECT row FROM outcome_sets WHERE expires <= ? ORDER BY expires, row LIMIT ?)`
	if err := w.exec(`DELETE FROM outcome_keys WHERE set_row IN `+expired, now, limit); err != nil {
		return fmt.Errorf("sweep outcomes: %w", err)
	}
	if err := w.exec(`DELETE FROM outcome_sets WHERE row IN `+expired, now, limit); err != nil {
		return fmt.Errorf("sweep outcomes: %w", err)
	}
	return nil
}

// Outcomes implements [store.OutcomeReader].
func (s *Store) Outcomes(ctx context.Context, project, correlationID string) ([]events.Outcome, error) {
	now := micros(s.cfg.Now())
	list, err := s.earlierOutcomes(ctx, project, correlationID, now)
	if err != nil {
		return nil, err
	}
	err = s.reads.each(ctx, `SELECT o.body FROM outcome_keys k CROSS JOIN outcome_sets o ON o.row = k.set_row
	  CROSS JOIN scopes s ON s.id = o.scope_id
	  WHERE k.hash = ? AND s.project = ? AND o.expires > ? ORDER BY o.revision, o.row`,
		[]any{outcomeHash(project, correlationID), project, now}, func(row scanner) error {
			var body sql.RawBytes
			if err := row.Scan(&body); err != nil {
				return err
			}
			var set []events.Outcome
			if err := inflate(body, &set); err != nil {
				return fmt.Errorf("decode outcomes: %w", err)
			}
			for _, o := range set {
				if o.CorrelationID == correlationID {
					list = append(list, o)
				}
			}
			return nil
		})
	s.followed()
	return list, err
}

// earlierOutcomes reads those that were stored one by one.
func (s *Store) earlierOutcomes(ctx context.Context, project, correlationID string, now int64) ([]events.Outcome, error) {
	if now >= s.earlier {
		return nil, nil
	}
	return bodies[events.Outcome](ctx, s.reads, `SELECT body FROM outcomes
	  WHERE project = ? AND correlation = ? AND expires > ? ORDER BY revision, row`, project, correlationID, now)
}

// readEarlier returns when the last outcome expires that was stored by itself, 0
// where there is none.
func readEarlier(ctx context.Context, conn *sql.Conn) (at int64, err error) {
	if err = conn.QueryRowContext(ctx, `SELECT coalesce(max(expires), 0) FROM outcomes`).Scan(&at); err != nil {
		return 0, fmt.Errorf("sqlite: read outcomes: %w", err)
	}
	return at, nil
}

var deflaters = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails for an unknown level only
	return w
}}

func deflate(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	w := deflaters.Get().(*flate.Writer) //nolint:forcetypeassert // only writers are put
	defer deflaters.Put(w)
	w.Reset(&out)
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func inflate(deflated []byte, into any) error {
	r := flate.NewReader(bytes.NewReader(deflated))
	defer r.Close() //nolint:errcheck // reads memory
	return json.NewDecoder(r).Decode(into)
}
