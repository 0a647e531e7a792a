// Package filtertest makes random filters, and facts and episodes that they match
// often enough, to hold every backend to the evaluator.
package filtertest
