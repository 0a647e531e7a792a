package store

import (
	"errors"
	"fmt"
	"math"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// CheckLimit returns an error unless the limit of a read is 1 to 1000.
func CheckLimit(limit int) error {
	if limit < 1 || limit > 1000 {
		return fmt.Errorf("limit %d is outside 1 to 1000", limit)
	}
	return nil
}

// PrepareEpisode checks an episode and converts it to the form in which backends store it:
// its instants are whole microseconds, and missing fields have their defaults. It has no
// ordinal yet.
func PrepareEpisode(e memory.Episode, now func() time.Time) (memory.Episode, error) {
	if err := e.Scope.Validate(); err != nil {
		return e, err
	}
	if e.ID == "" {
		return e, errors.New("put episode: id is required")
	}
	if e.Mode == "" {
		e.Mode = events.ModePersistent
	}
	if e.ArrivedAt.IsZero() {
		e.ArrivedAt = now()
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = e.ArrivedAt
	}
	e.ArrivedAt = InOffset(e.ArrivedAt.UnixMicro(), 0)
	_, offset := e.Timestamp.Zone()
	e.Timestamp = InOffset(e.Timestamp.UnixMicro(), offset)
	e.Ordinal = 0
	return e, nil
}

// KnownPut is the answer to an episode whose id is known.
func KnownPut(e, known memory.Episode, state memory.State) Put {
	same := known.Content == e.Content && known.Role == e.Role && known.Mode == e.Mode
	return Put{Episode: known, Known: same, Conflict: !same, State: state}
}

// CheckVectors returns an error unless vectors, of which there is one at least, are numbers
// of one size and of one space.
func CheckVectors(vectors []Vector) error {
	first := vectors[0]
	for _, v := range vectors {
		if err := v.Ref.Scope.Validate(); err != nil {
			return err
		}
		if v.Ref.Target != Facts && v.Ref.Target != Episodes {
			return fmt.Errorf("put vector: target %d is neither facts nor episodes", v.Ref.Target)
		}
		if v.Ref.Space != first.Ref.Space {
			return fmt.Errorf("put vectors of spaces %d and %d: %w", first.Ref.Space, v.Ref.Space, ErrEmbedder)
		}
		if len(v.Values) != len(first.Values) || len(v.Values) == 0 {
			return fmt.Errorf("put vectors of %d and %d dimensions: %w", len(v.Values), len(first.Values), ErrEmbedder)
		}
		for _, x := range v.Values {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return fmt.Errorf("put vector of %s: holds %g", v.Ref.ID, x)
			}
		}
	}
	return nil
}

// Takes returns [ErrEmbedder] unless vectors of that many dimensions are of the space. They
// are of any space without dimensions.
func (s Space) Takes(dimensions int) error {
	if known := s.Embedder.Dimensions; known != 0 && known != dimensions {
		return fmt.Errorf("vectors of %d dimensions, space %d has %d: %w", dimensions, s.ID, known, ErrEmbedder)
	}
	return nil
}

// CheckVector returns [ErrEmbedder] unless a search by a vector is one of the served space.
func (q SearchQuery) CheckVector(vector []float32, served Space) error {
	if q.Space != 0 && q.Space != served.ID {
		return fmt.Errorf("search space %d, space %d is served: %w", q.Space, served.ID, ErrEmbedder)
	}
	return served.Takes(len(vector))
}
