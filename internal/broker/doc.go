// Package broker is where Palimpsest meets NATS: it connects, runs the server
// as a library where none is given, and keeps the journal (the AUDIT stream).
//
// Services never see this package. They are handed what it makes.
package broker
