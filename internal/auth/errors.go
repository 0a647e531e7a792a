package auth

import "errors"

// Why a key is not accepted, or not changed.
var (
	ErrNoKey   = errors.New("auth: no key is given")
	ErrUnknown = errors.New("auth: the key is unknown")
	ErrRevoked = errors.New("auth: the key is revoked")
	ErrExpired = errors.New("auth: the key has expired")
	// ErrNotFound: there is no key with that id.
	ErrNotFound = errors.New("auth: there is no key with that id")
)
