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
	attribute                     // its predicate is what the question asks for
	graphed                       // it names an entity to which the question's relations lead
	ownLikeness                   // share of the question's weight that it holds in words of like meaning
	nearLikeness                  // the same of it and its neighbours
	factLikeness                  // the same of a fact, beyond its turn and the neighbours of that
	aged                          // how late it is said where the question asks for what is now, how early where for what was before
	names                         // it holds a name, or a relative or friend, and the question asks who, where or for a name
	features
)

// featureNames are those of an explanation.
var featureNames = [features]string{
	"text", "previous", "next", "second_before", "second_after", "session", "coverage", "rarity", "adjacent", "answering",
	"vector", "previous_vector", "session_vector", "speaker", "other_speaker", "assistant", "question", "length", "date", "number", "subject", "own_coverage", "known",
	"memory", "fact", "fact_vector", "fact_coverage", "attribute", "graph", "likeness", "near_likeness", "fact_likeness", "aged", "names",
}

// weights were fitted to labelled conversations (palimpsest eval fit). They are
// those of the kinds of evidence above alone; no word has a weight.
var weights = [features]float64{
	ownText: 1.32, previousText: 0.11, nextText: 0.38, secondBefore: 0.72, secondAfter: -0.17, sessionText: 0.47,
	coverage: 1.52, ownCoverage: 0.57, rarity: 0.12, adjacent: 0.26, answering: 1.90,
	ownVector: 1.73, previousVector: 0.12, sessionVector: 0.87,
	ownLikeness: 0.97, nearLikeness: 1.73,
	speaks: -0.24, othersSpeak: -1.20, isAssistant: -2.25, isQuestion: -0.65, length: -1.50,
	dated: 3.87, numbered: 1.86, names: 1.05, aged: 1.76, subject: 0.73, knownWords: -0.57, memorySize: -1.21,
	factText: 1.34, factVector: 0.07, factCoverage: 1.48, factLikeness: 1.24, attribute: 1.15, graphed: 1.76,
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
	middle = 7.60
	spread = 1.26
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
