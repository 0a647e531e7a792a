// Package events is the wire: every message that travels between the services,
// in the order in which data meets it.
//
//	episode.recorded ─▶ episode.stored ─▶ tick.issued ─▶ candidates.extracted
//	  session.ended                          │                 ▲  (stale basis)
//	                                         ▼                 │
//	                     command.requested ─▶ deltas.decided ──┘─▶ effect.committed
//
// Publishers speak through [Encode], readers through [Decode] (the envelope, in
// any of its forms) and [DecodeData] (the data, of a known kind). The scope of a
// message is that of its subject, whatever the message says.
//
// An episode is identified by (project, scope, source, id): a publisher that
// repeats an id says the same thing again. Ids of what follows from a message
// are hashes of their cause ([HashID], [Identified]), so that a redelivery names
// what it made before.
//
// Each kind has one payload struct with Validate, a JSON schema and a golden
// file. Envelopes are CloudEvents 1.0. Decoders ignore unknown fields, and
// those of effect.committed are kept for ever.
package events
