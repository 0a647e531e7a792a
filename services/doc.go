// Package services documents the steps of the pipeline, which are its folders, in the
// order in which data meets them:
//
//	ingest ─▶ scheduler ─▶ extractor ─▶ decider ─▶ consolidator ─▶ query
//
// An episode is stored by ingest. The scheduler decides when which episodes are processed,
// the extractor finds candidate facts in them, the decider turns candidates into deltas,
// and the consolidator commits the deltas to AUDIT and applies them to the memory store.
// The query service answers callers, whose writes come back as events.
//
// A service imports no other service, no backend and no driver. Messages between services
// are the events of pkg/events.
package services
