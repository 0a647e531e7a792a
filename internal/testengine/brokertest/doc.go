// Package brokertest gives tests a real broker: the embedded server on a
// directory of its own, with the whole topology.
package brokertest
