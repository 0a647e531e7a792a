// Package retrieval answers a question from the memory store: it queries
// the store's channels in parallel, scores each hit together with its neighbours,
// and leaves out and names a channel that fails. Rankings are fused only here.
package retrieval
