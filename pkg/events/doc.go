// Package events is the wire: every message that travels between the services,
// in the order in which data meets it.
//
//	episode.recorded ─▶ episode.stored ─▶ tick.issued ─▶ candidates.extracted
//	  session.ended                          │                 ▲  (stale basis)
//	                                         ▼                 │
//	                     command.requested ─▶ deltas.decided ──┘─▶ effect.committed
//
// Each kind has one payload struct with Validate, a JSON schema and a golden
// file. Envelopes are CloudEvents 1.0. Decoders ignore unknown fields, and
// those of effect.committed are kept for ever.
package events
