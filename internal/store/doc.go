// Package store is the contract of the memory store: small roles, each with the
// requirements on a backend, and their sentinel errors. Backends are
// sibling folders; storetest is the suite that each must pass.
//
// The store is a projection. Ingest writes episodes; everything else it holds
// (facts, versions, entities, edges, holds, watermarks, session ends, outcomes)
// is written by [Applier.Apply] alone, from effects that AUDIT already holds.
//
// Isolation: every method works within one project, named by its scope or
// selector, and must never return or touch a row of another, whatever the
// identifiers contain. All methods are safe for concurrent use, honour ctx, and
// return times in UTC unless the field says that it keeps its offset.
package store
