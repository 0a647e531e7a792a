// Package transformer embeds texts by a BERT encoder in a directory of
// sentence-transformers, as all-MiniLM-L6-v2: the tokens of a text pass through the
// layers of the model (Devlin et al. 2019), and the mean of their outputs, or the
// first output, is the vector (Reimers and Gurevych 2019).
//
// A text is cut off at the longest sequence of the model. A text without a token of
// the vocabulary has the zero vector, which has no direction: a caller must give it
// no weight.
package transformer
