// Package graph walks the entities of a fact scope along the edges that facts make
// between them, and describes entities by their facts.
package graph
