// Package retrieval answers a question from the memory store: it asks the
// store's channels in parallel, scores what they found together with what stands
// around it, and leaves out and names a channel that fails. It is the only place
// where rankings are fused.
package retrieval
