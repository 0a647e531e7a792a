// Package extractor turns episodes into candidate facts.
//
//	ticks ─▶ extractor ─▶ candidates
//
// For a tick it reads the episodes of the range and the turns before them, runs
// the extractor that the tick's rule names, and emits one batch. An empty batch is
// committed too, because the watermark moves only at the
// commit. It writes nothing, decides nothing and keeps nothing between ticks.
package extractor
