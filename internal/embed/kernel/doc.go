// Package kernel computes the costly operations of a transformer: products of
// matrices, softmax, GELU and layer normalisation of 32-bit floats; and the inner product
// of two vectors, which a search of vectors computes for each row. It has assembly for
// AVX2 with FMA and for NEON (not for the inner product), and Go for all other processors.
//
// A number of a result depends only on its row and column, never on the number of
// rows that are computed together, so that a text has the same vector in every batch.
package kernel
