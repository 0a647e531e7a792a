// Package config lays settings over one another: defaults, one YAML file,
// environment variables, flags. It defines no keys: the keys are the fields of a
// given struct, and each part of the product declares the struct that configures it.
package config
