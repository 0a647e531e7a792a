// Package extract is the contract of extractors: how episodes become
// candidates. Implementations are sibling folders.
package extract
