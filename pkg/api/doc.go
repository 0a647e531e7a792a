// Package api declares the requests and answers of the HTTP interface, in the order of
// its routes, for the server and for pkg/client.
package api
