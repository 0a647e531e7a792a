// Package app is the only package where services and backends meet: it reads the
// configuration, opens the configured backends, gives each service its dependencies,
// and runs the services of a process.
package app
