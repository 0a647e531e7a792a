package store

import (
	"context"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Searcher offers the primitives of retrieval; fusion happens elsewhere.
type Searcher interface {
	// SearchText returns up to q.Limit hits by BM25, best first; Score rises
	// with relevance and is comparable within one answer only. Text is matched
	// as Unicode words with stemming, CJK as bigrams and single characters; no
	// character of it may act as query syntax. A query without a searchable
	// word gives no hit.
	SearchText(ctx context.Context, sel scope.Selector, text string, q SearchQuery) ([]Hit, error)
	// SearchVector returns up to q.Limit hits by cosine similarity, which is
	// Score, best first. It must be exact up to 100,000 rows of 256 dimensions in one
	// scope; among more, at least 95 of the 100 hits nearest by exact comparison must be
	// found, each with its exact score. A
	// vector of another dimension, or of a space that is not served any more, is
	// [ErrEmbedder]: the caller embeds the question in the served space and asks
	// again. It must never compare vectors of two spaces.
	SearchVector(ctx context.Context, sel scope.Selector, vector []float32, q SearchQuery) ([]Hit, error)
}

// OrdinalReader reads what was said around an episode.
type OrdinalReader interface {
	// EpisodesAt returns the episodes of a fact scope that have one of the
	// ordinals, by ordinal. It must not read others.
	EpisodesAt(ctx context.Context, fact scope.Scope, ordinals []uint64) ([]memory.Episode, error)
}

// TextCounts are what a text search weighs terms by.
type TextCounts struct {
	// Documents and Terms count the texts within the selector, and their terms with
	// repetitions.
	Documents, Terms uint64
	// Holding counts, for each term of the query, the texts that hold it.
	Holding map[string]uint64
}

// Target is what a search looks through.
type Target int

// The targets.
const (
	Facts Target = 1 << iota
	Episodes
)

// SearchQuery narrows a search.
type SearchQuery struct {
	Target Target // exactly one
	Limit  int    // 1 to 1000
	// Session, Kinds and ValidAt narrow facts as in [FactQuery]; archived facts
	// are never found. Session narrows episodes to that session.
	Session *string
	Kinds   []events.FactKind
	ValidAt time.Time
	// After and Before bound an episode's Timestamp or a fact's EventTime, both
	// exclusive; zero means unbounded.
	After, Before time.Time
	Filter        *Filter
	// Counts, where it is not nil, is set by SearchText.
	Counts *TextCounts
	// Space is that of the vector that SearchVector gets; 0 means the served one.
	Space uint64
}

// Hit is one row found. Fact is set for facts, Episode for episodes.
type Hit struct {
	Score   float64
	Fact    *Fact
	Episode *memory.Episode
}

// VectorWriter is the embedding loop's role.
type VectorWriter interface {
	VectorSpaces
	// PendingVectors returns up to limit texts that lack their vector in a space (0
	// means the served one), of fact scopes in those partitions (0 to
	// [events.Partitions]-1), or in any if none is named. A store that belongs to one
	// process may return those of any. Rows of a project come oldest first, but for
	// the rows from before a space was begun, which come in any order. Projects take
	// turns: where not all rows fit, each project has as many as another, and calls
	// that follow one another leave none out. Rows that were refused are not
	// returned. A space that is gone lacks nothing.
	PendingVectors(ctx context.Context, space uint64, limit int, partitions ...int) ([]PendingVector, error)
	// PutVectors stores vectors of one space for those rows whose text is still the
	// one that was embedded (by revision for facts), and clears their flag. A space
	// that is gone is [ErrEmbedder].
	PutVectors(ctx context.Context, vectors []Vector) error
	// RefuseVectors sets rows of one space aside whose text is still the one that was
	// to be embedded: they are pending again when their text changes, or in another
	// space. They are found by text.
	RefuseVectors(ctx context.Context, refused []RefusedVector) error
	// RefusedVectors returns up to limit rows that were refused in the served space.
	RefusedVectors(ctx context.Context, limit int) ([]RefusedVector, error)
}

// PendingVector is a text to embed.
type PendingVector struct {
	Ref  VectorRef
	Text string
}

// VectorRef names the row a vector belongs to, and the space that it is of; 0 means
// the served one. It is opaque to callers.
type VectorRef struct {
	Space    uint64
	Target   Target
	Scope    scope.Scope
	ID       string
	Source   string
	Revision uint64
}

// Vector is an embedded text.
type Vector struct {
	Ref    VectorRef
	Values []float32
}

// RefusedVector is a row whose text the embedder does not take, and why.
type RefusedVector struct {
	Ref    VectorRef
	Reason string
}
