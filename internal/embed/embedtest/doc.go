// Package embedtest is the suite that every embedder must pass.
package embedtest
