// Package broker connects to NATS, and runs the NATS server in this process where no
// other one is configured.
//
// Services do not import this package. They receive connections and streams.
package broker
