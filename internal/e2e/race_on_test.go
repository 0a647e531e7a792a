//go:build race

package e2e

// buildFlags build the program as these tests were built.
var buildFlags = []string{"-race"}

// many is as many events as a busy minute brings, within what the race detector
// leaves of the machine's speed.
const many = 540

// checks of a property, each a whole run of the services.
const checks = "5"
