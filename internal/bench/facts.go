package bench

import (
	"context"
	"crypto/md5" //nolint:gosec // a fact's hash, which keeps no secret
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"palimpsest/internal/bench/bare"
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

// fill gives both sides the same n facts.
func (b *bench) fill(ctx context.Context, s store.Store, other *bare.Search, n int) error {
	speech := newSpeech(factsSeed)
	return other.Fill(ctx, func(add func([]string, [][]float32) error) error {
		for from := 0; from < n; from += effectFacts {
			effect := factsEffect(speech, uint64(from/effectFacts+1), from, min(effectFacts, n-from))
			texts := make([]string, len(effect.Facts))
			for i, f := range effect.Facts {
				texts[i] = f.Text
			}
			values, err := b.Embedder.Embed(ctx, texts)
			if err != nil {
				return fmt.Errorf("embed: %w", err)
			}
			if err := put(ctx, s, effect, values); err != nil {
				return err
			}
			if err := add(texts, values); err != nil {
				return err
			}
		}
		return nil
	})
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

// vocabulary is how many different words the texts have.
const vocabulary = 20_000

// word is the one of a rank, from 0: pronounceable, different for each rank
// below 512,000, and the same in every run.
func word(rank int) string {
	const consonants, vowels = "bdfghjklmnprstvz", "aeiou"
	const syllables = len(consonants) * len(vowels)
	// Neighbouring ranks look nothing alike: the factor is prime to the number
	// of words there can be.
	n := rank * 7919 % (syllables * syllables * syllables)
	var b strings.Builder
	for range 3 {
		s := n % syllables
		b.WriteByte(consonants[s/len(vowels)])
		b.WriteByte(vowels[s%len(vowels)])
		n /= syllables
	}
	b.WriteByte('n') // no ending that stemming would take off
	return b.String()
}

// names is how many different names there are.
const names = 10_000

// name is a capitalised word of those that are no other word of the texts.
func name(i int) string {
	w := word(2*vocabulary + i%names)
	return strings.ToUpper(w[:1]) + w[1:]
}

// speech draws words as a language does: few of them often.
type speech struct {
	*rand.Rand
	zipf *rand.Zipf
}

func newSpeech(seed uint64) speech {
	r := rand.New(rand.NewPCG(seed, seed))
	return speech{r, rand.NewZipf(r, 1.1, 5, vocabulary-1)}
}

func (s speech) words(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = word(int(s.zipf.Uint64()))
	}
	return strings.Join(words, " ")
}

// verbs relate people to things; none is a stop word.
var verbs = []string{"likes", "dislikes", "owns", "builds", "studies", "sells", "paints", "collects", "teaches", "repairs"}
