//go:build race

package e2e

// buildFlags build the program as `make test` builds the tests.
var buildFlags = []string{"-race", "-gcflags=modernc.org/sqlite/lib=-race=false", "-gcflags=modernc.org/libc/...=-race=false"}

// many is as many events as a busy minute brings, within what the race detector
// leaves of the machine's speed.
const many = 540

// checks of a property, each a whole run of the services.
const checks = "5"
