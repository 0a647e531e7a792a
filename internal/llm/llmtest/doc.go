// Package llmtest is the suite that every provider of a language model must pass,
// and a local endpoint that answers by script in each wire format.
package llmtest
