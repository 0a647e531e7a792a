// Package httpserver runs an HTTP handler well: bounded bodies and times, a
// recovered panic, an access record per request, and a stop that lets requests
// under way finish.
package httpserver
