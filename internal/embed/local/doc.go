// Package local is the embedder that needs no model, no key and no network:
// it hashes the words and character n-grams of a text into a vector of 256
// dimensions. Texts that share words, or parts of words, are close; texts that
// share only meaning are not. It is lexical, and its Info reports that.
package local
