// Package wordpiece splits texts into the tokens of a BERT vocabulary, as the
// tokenizer.json files of Hugging Face describe it: normalise, split at spaces
// and punctuation, then take the longest pieces from the left (Wu et al. 2016).
//
// Names of special tokens have no meaning in a text: "[CLS]" is a word between
// brackets.
package wordpiece
