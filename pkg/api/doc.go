// Package api is what the HTTP interface sends and expects, in the order of its
// routes: shared by the server and by pkg/client, so that there is one of each.
package api
