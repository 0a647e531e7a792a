package retrieval

import "math"

// feature is one thing that speaks for or against a hit, mostly from 0 to 1.
type feature int

// The features. Scores of one leg are divided by the best of the answer.
const (
	ownText        feature = iota // BM25 of the text
	previousText                  // of the turn before it in its session
	nextText                      // of the turn after it
	secondBefore                  // of the turn before that
	secondAfter                   // of the turn after that
	sessionText                   // mean of the three best of its session
	coverage                      // share of the question's weight that it or its neighbours hold
	rarity                        // weight of the rarest term that it holds
	adjacent                      // pairs of terms that stand together in both
	answering                     // BM25 of the turn before it, if that asks
	ownVector                     // similarity
	previousVector                // of the turn before it
	sessionVector                 // mean of the three best of its session
	speaks                        // a named speaker says it
	othersSpeak                   // another speaker is named
	isAssistant                   // an assistant without a name says it
	isQuestion                    // it asks
	length                        // logarithm of its terms
	dated                         // a date named in the question is its own
	numbered                      // it holds a number and the question asks when
	subject                       // the asker is whom a fact is about, as the question is; negative where it is another
	ownCoverage                   // share of the question's weight that it holds itself
	knownWords                    // share of the question's weight in terms that any text holds; the same for all hits
	memorySize                    // logarithm of the number of texts searched; the same for all hits
	factText                      // BM25 of a fact beyond that of its turn; of a turn's facts the best one's
	factVector                    // its similarity beyond that of its turn
	factCoverage                  // share of the question's weight that it holds beyond its turn and the neighbours of that
	askedFor                      // its predicate is what the question asks for
	graphed                       // it names an entity to which the question's relations lead
	ownLikeness                   // share of the question's weight that it holds in words of like meaning
	nearLikeness                  // the same of it and its neighbours
	factLikeness                  // the same of a fact, beyond its turn and the neighbours of that
	aged                          // how late it is said where the question asks for what is now, how early where for what was before
	names                         // it holds a name, or a relative or friend, and the question asks who, where or for a name
	other                         // its subject is a person whom a question about the asker does not mention
	fits                          // it holds a value of the kind that the question asks for
	features
)

// featureNames are those of an explanation.
var featureNames = [features]string{
	"text", "previous", "next", "second_before", "second_after", "session", "coverage", "rarity", "adjacent", "answering",
	"vector", "previous_vector", "session_vector", "speaker", "other_speaker", "assistant", "question", "length", "date", "number", "subject", "own_coverage", "known",
	"memory", "fact", "fact_vector", "fact_coverage", "attribute", "graph", "likeness", "near_likeness", "fact_likeness", "aged", "names",
	"other", "fits",
}

// weights were fitted to labelled conversations (palimpsest eval fit). They are
// those of the kinds of evidence above alone; no word has a weight.
var weights = [features]float64{
	ownText: 1.04, previousText: 0.03, nextText: 0.50, secondBefore: 0.88, secondAfter: -0.14, sessionText: 0.76,
	coverage: 1.69, ownCoverage: 0.41, rarity: 0.30, adjacent: 0.36, answering: 1.85,
	ownVector: 1.64, previousVector: 0.02, sessionVector: 0.95,
	ownLikeness: 0.74, nearLikeness: 1.77,
	speaks: -0.18, othersSpeak: -1.13, isAssistant: -2.28, isQuestion: -0.65, length: -1.35,
	dated: 3.91, numbered: 0.91, names: 0.91, other: -1.77, fits: 1.43, aged: 1.55, subject: 0.67, knownWords: -0.54, memorySize: -2.33,
	factText: 1.40, factVector: 0.37, factCoverage: 1.45, factLikeness: 1.22, askedFor: 1.05, graphed: 1.2,
}

// values are the features of one hit.
type values [features]float64

// score is the weighted sum; the legs' own features are scaled by their
// configured weights.
func (v *values) score(c Config) float64 {
	sum := 0.0
	for f := range v {
		sum += v.share(feature(f), c)
	}
	return sum
}

// share is what one feature adds to the score.
func (v *values) share(f feature, c Config) float64 {
	share := v[f] * weights[f]
	switch f {
	case ownText, previousText, nextText, secondBefore, secondAfter, sessionText, coverage, ownCoverage, rarity, adjacent, answering, factText, factCoverage,
		ownLikeness, nearLikeness, factLikeness:
		return share * c.Text
	case ownVector, previousVector, sessionVector, factVector:
		return share * c.Vector
	case graphed:
		return share * c.Graph
	}
	return share
}

// The logistic curve that takes a sum to the share of right answers among hits with
// that sum. It and the weight of known were fitted to the first 25 answers to
// labelled questions (palimpsest eval fit).
const (
	middle = 7.21
	spread = 1.25
)

func logistic(sum float64) float64 { return 1 / (1 + math.Exp(-(sum-middle)/spread)) }

// explain lists the share of each feature that counts.
func (v *values) explain(c Config) map[string]float64 {
	shares := map[string]float64{}
	for f := range v {
		if share := v.share(feature(f), c); share != 0 {
			shares[featureNames[f]] = share
		}
	}
	return shares
}
