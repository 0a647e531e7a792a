// Package assembly packs what a search found into a block of markdown for a system
// prompt, under a budget of tokens.
package assembly
