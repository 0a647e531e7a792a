package retrieval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// The kinds of fusion.
const (
	// FusionScores sums normalised scores of the channels and of the neighbours of a
	// hit.
	FusionScores = "scores"
	// FusionRRF sums reciprocal ranks.
	FusionRRF = "rrf"
)

// Config weighs the channels.
type Config struct {
	// Fusion is scores or rrf.
	Fusion string `yaml:"fusion"`
	// K is the constant of reciprocal rank fusion; 60 unless given (Cormack et
	// al. 2009).
	K float64 `yaml:"k"`
	// Text and Vector are the weights of the channels; one of 0 is not asked. With
	// scores they scale what was fitted, which is 1.
	Text   float64 `yaml:"text"`
	Vector float64 `yaml:"vector"`
	// Graph is the weight of what facts relate to the people and things of the
	// question; 0 leaves it out.
	Graph float64 `yaml:"graph"`
	// MinScore is the score below which a hit is left out, unless the query has one
	// of its own. With reciprocal rank fusion a score is no share of right answers.
	MinScore float64 `yaml:"min_score"`
	// Diversity, from 0 to 1, is how much likeness to better hits lowers a hit
	// (maximal marginal relevance, Carbonell and Goldstein 1998). It takes fusion by
	// scores; hits are then no longer in the order of their scores.
	Diversity float64 `yaml:"diversity"`
	// Salience is v1 or v2: which of two facts of one score comes first.
	Salience string `yaml:"salience"`
	// Tau is the time in which the recency of an unread fact falls to 37 %.
	Tau time.Duration `yaml:"tau"`
	// Deadline of one channel; a later one is left out of the answer.
	Deadline time.Duration `yaml:"deadline"`
}

// DefaultConfig returns the weights that ship.
func DefaultConfig() Config {
	return Config{Fusion: FusionScores, K: 60, Text: 1, Vector: 1, Graph: 1, Salience: SalienceV1, Tau: memory.DefaultSalienceTau, Deadline: 2 * time.Second}
}

// Validate refuses weights that cannot rank.
func (c Config) Validate() error {
	switch {
	case c.Fusion != FusionScores && c.Fusion != FusionRRF:
		return fmt.Errorf("search fusion %q is neither %s nor %s", c.Fusion, FusionScores, FusionRRF)
	case c.K <= 0:
		return errors.New("rrf.k must be above 0")
	case c.Text < 0 || c.Vector < 0 || c.Graph < 0:
		return errors.New("rrf weights must not be negative")
	case c.Text+c.Vector == 0:
		return errors.New("rrf weights must not all be 0")
	case c.MinScore < 0 || c.MinScore > 1:
		return errors.New("search min_score must be from 0 to 1")
	case c.Diversity < 0 || c.Diversity > 1:
		return errors.New("search diversity must be from 0 to 1")
	case c.Salience != "" && c.Salience != SalienceV1 && c.Salience != SalienceV2:
		return fmt.Errorf("search salience %q is neither %s nor %s", c.Salience, SalienceV1, SalienceV2)
	case c.Tau < 0:
		return errors.New("search tau must not be negative")
	case c.Deadline <= 0:
		return errors.New("search deadline must be above 0")
	}
	return nil
}

// The versions of salience that break ties.
const (
	SalienceV1 = "v1" // recency and number of reads
	SalienceV2 = "v2" // recency, relevance and confidence
)

func (c Config) ties(now time.Time) ties {
	if c.Salience == SalienceV2 {
		return ties{memory.SalienceV2{Tau: c.Tau}, now}
	}
	return ties{salience: memory.SalienceV1{Tau: c.Tau}}
}

// Query is a question.
type Query struct {
	Scope scope.Selector
	Text  string
	// Limit is 1 to 1000; 0 means 5 or 20 by complexity.
	Limit    int
	Facts    bool
	Episodes bool
	Kinds    []events.FactKind
	// Filter keeps the facts and episodes that match; nil keeps all.
	Filter *store.Filter
	// After and Before bound Timestamp and EventTime, exclusive.
	After, Before time.Time
	// ValidAt keeps the facts true then.
	ValidAt time.Time
	// Earlier lists the versions that held at ValidAt and were succeeded since, as
	// far as they are asked for: the store's indexes hold newest versions alone. Nil
	// where ValidAt is now.
	Earlier func(context.Context) ([]store.Fact, error)
	// MinScore leaves out hits below it.
	MinScore float64
	// Explain adds Features to the hits.
	Explain bool
	// speakers passes those of what the text channel found to the vector channel;
	// nil where it does not wait for them.
	speakers chan map[string]bool
	// Now is what the dates and sessions that the question names are counted from,
	// in its zone; zero leaves them unread.
	Now time.Time
	// Page continues an answer in order of time.
	Page *Page

	named *named // the time that the question names, nil for none
}

// Hit is one fact or episode and where each channel ranked it. With fusion by scores
// Score is calibrated: the share of right answers among hits of that score, as
// measured on labelled conversations.
type Hit struct {
	store.Hit
	Score    float64
	Channels map[string]Place
	// Features are the shares of the score before it is brought to [0,1], by name,
	// and LentBy the facts whose match counts for the episode that they came from;
	// with fusion by scores.
	Features map[string]float64
	LentBy   []string
}

// Place is a channel's rank, from 1, and score.
type Place struct {
	Rank  int
	Score float64
}

// Results is an answer, best first.
type Results struct {
	Hits       []Hit
	Complexity Complexity
	// Degraded names channels that failed or came too late.
	Degraded []string
	// Next is the page behind these hits, nil where none is. Only an answer in order
	// of time has pages.
	Next *Page
}

// ErrUnavailable: no channel answered.
var ErrUnavailable = errors.New("retrieval: no channel answered")

// Engine searches one memory store.
type Engine struct {
	config    Config
	store     Store
	embedders embed.Set
	documents *documents
	facts     *statements
}

// Store is the roles of the memory store that searching takes.
type Store interface {
	store.Searcher
	store.OrdinalReader
	store.Timeline
	store.SpaceReader
	Graph
}

// New returns an engine, or an error for a configuration that cannot rank.
//
// A question is embedded by the one of embedders whose space the store serves; where
// there is none, the vector channel fails.
func New(config Config, searcher Store, embedders embed.Set) (*Engine, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("retrieval: %w", err)
	}
	e := &Engine{config: config, store: searcher, embedders: embedders, documents: newDocuments(), facts: newStatements()}
	if own := embedders(searcher.Spaces().Served.Embedder); own != nil {
		e.documents.table = contentOf(embed.WordsOf(own))
		e.facts.table = e.documents.table
	}
	return e, nil
}

// Search answers q. It returns [ErrUnavailable] (joined with the causes) only if
// every channel failed.
func (e *Engine) Search(ctx context.Context, q Query) (Results, error) {
	out, done, err := e.inOrder(ctx, &q)
	if done || err != nil {
		return out, err
	}
	q.Text = lex.Plain(q.Text)
	complexity := ComplexityOf(q.Text)
	if q.Limit <= 0 {
		q.Limit = complexity.Limit()
	}
	legs := e.ask(ctx, q)
	out.Complexity = complexity
	var causes []error
	answered := false
	for _, l := range legs {
		if l.err != nil {
			out.Degraded = append(out.Degraded, l.name)
			causes = append(causes, fmt.Errorf("%s: %w", l.name, l.err))
			continue
		}
		answered = answered || l.name != graphLeg // which may have nothing to follow
	}
	if !answered {
		return out, errors.Join(append([]error{ErrUnavailable}, causes...)...)
	}
	if e.config.Fusion == FusionRRF {
		out.Hits = fuse(e.config.K, e.config.ties(q.Now), legs, q.Limit)
		out.Hits = slices.DeleteFunc(out.Hits, func(h Hit) bool { return h.Score < q.MinScore })
		return out, nil
	}
	ok := false
	if out.Hits, ok = e.score(ctx, q, legs); !ok {
		out.Degraded = append(out.Degraded, contextLeg)
	}
	return out, nil
}
