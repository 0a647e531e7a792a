// Package assembly formats the results of a search as a block of markdown for a system
// prompt, within a budget of tokens.
package assembly
