// Package retrieval answers a question from the memory store: it asks the
// store's channels in parallel, fuses their rankings, and leaves out and names a
// channel that fails. It is the only place where rankings are fused.
package retrieval
