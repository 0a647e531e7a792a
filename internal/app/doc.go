// Package app is the only package where services and backends meet: it reads the
// configuration, opens what it names, hands each service its dependencies, and
// runs the command line.
package app
