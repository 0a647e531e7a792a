// Package events is the wire: every message that travels between the services,
// in the order in which data meets it.
//
//	episode.recorded ─▶ episode.stored ─▶ tick.issued ─▶ candidates.extracted
//	  session.ended                          │                 ▲  (stale basis)
//	                                         ▼                 │
//	                     command.requested ─▶ deltas.decided ──┘─▶ effect.committed
//
// Publishers use [Encode]. Readers use [Decode] for the envelope, in any of its
// forms, and [DecodeData] for the data of a known kind. The scope of a message
// follows from its subject alone.
//
// An episode is identified by (project, scope, source, id): the same id twice is
// one episode. The ids of messages that follow from a message are hashes of their
// cause ([HashID], [Identified]), so that a redelivery publishes the same ids.
//
// Each kind has one payload struct with Validate, a JSON schema and a golden
// file. Envelopes are CloudEvents 1.0. Decoders ignore unknown fields, and
// those of effect.committed are kept for ever.
package events
