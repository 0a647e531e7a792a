// Package static is the semantic embedder that needs no key and no download: a
// text's vector is the sum of its tokens' vectors, which a table holds. The
// table in this package is distilled from all-MiniLM-L6-v2 (tools/distil makes
// it); Open reads any other in the layout of model2vec.
//
// Word order, and words that are not in the table, do not change the vector: the table
// in this package covers texts in Latin script only. A text without a token of
// the table has the zero vector, which has no direction: a caller must give it
// no weight.
package static
