// Package client talks to Palimpsest's HTTP interface: one method per route,
// with the types of pkg/api. Errors that the server explains are [*api.Problem].
package client
