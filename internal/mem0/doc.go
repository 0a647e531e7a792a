// Package mem0 serves the REST routes of mem0's clients over the native API, so
// that an application changes only its base URL. A memory is a fact; a run is a
// session.
//
// The hosted family is what mem0's published clients and command line call. The
// compat family is the smaller table of a self-hosted server, whose add waits for
// its results.
//
// Scopes have no level for an application: app_id is a metadata member of the
// facts and is compared after the read.
package mem0
