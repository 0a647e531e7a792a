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
	features
)

// featureNames are those of an explanation.
var featureNames = [features]string{
	"text", "previous", "next", "second_before", "second_after", "session", "coverage", "rarity", "adjacent", "answering",
	"vector", "previous_vector", "session_vector", "speaker", "other_speaker", "assistant", "question", "length", "date", "number", "subject", "own_coverage", "known",
}

// weights were fitted to labelled conversations (palimpsest eval fit). They are
// those of the kinds of evidence above alone; no word has a weight.
var weights = [features]float64{
	ownText: 1.05, previousText: -0.10, nextText: 0.71, secondBefore: 0.96, secondAfter: 0.03, sessionText: 1.29,
	coverage: 3.03, ownCoverage: 0.98, rarity: 1.21, adjacent: 0.36, answering: 1.93,
	ownVector: 1.07, previousVector: 0.48, sessionVector: 0.98,
	speaks: 0.54, othersSpeak: -0.54, isAssistant: -3.37, isQuestion: -0.66, length: -0.63,
	dated: 4.19, numbered: 2.13, subject: 2, knownWords: 3.13,
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
	case ownText, previousText, nextText, secondBefore, secondAfter, sessionText, coverage, ownCoverage, rarity, adjacent, answering:
		return share * c.Text
	case ownVector, previousVector, sessionVector:
		return share * c.Vector
	}
	return share
}

// The logistic curve that takes a sum to the share of right answers among hits with
// that sum. It and the weight of known were fitted to the first 25 answers to
// labelled questions (palimpsest eval fit).
const (
	middle = 13.79
	spread = 1.37
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
