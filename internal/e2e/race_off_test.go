//go:build !race

package e2e

// buildFlags build the program as these tests were built.
var buildFlags []string

// many is as many events as a busy minute brings.
const many = 9990

// checks of a property, each a whole run of the services.
const checks = "60"
