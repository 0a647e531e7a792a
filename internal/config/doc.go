// Package config lays settings over one another: defaults, one YAML file,
// environment variables, flags. It knows no key by itself: the keys are the
// fields of the struct that it is given, and each part of the product owns the
// struct that configures it.
package config
