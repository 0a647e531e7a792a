// Package extracttest is the suite that every extractor must pass: the table of
// behaviour, and the laws of the contract.
package extracttest
