// Package kernel computes what a transformer spends its time on: products of
// matrices, softmax, GELU and layer normalisation of 32-bit floats. It has
// assembly for AVX2 with FMA and for NEON, and Go for all other processors.
//
// A number of a result depends on its own row and column alone, never on how many
// rows are computed together, so that a text has the same vector alone and among
// others.
package kernel
