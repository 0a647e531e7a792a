// Package rules reads consolidation rules: the shipped ones, and those of a
// configuration, which change or extend them. Every error names the file, the line
// and the rule.
package rules
