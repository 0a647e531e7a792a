package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"palimpsest/pkg/scope"
)

// Role is what a key may do. Each role may do what the ones before it may.
type Role int

// The roles. Anonymous is the role of callers without a key where keys are required.
const (
	Anonymous Role = iota
	Reader         // searches and reads
	Writer         // records, states, corrects and forgets
	Operator       // metrics, dead letters, replay, ledger, digest, reports
	Admin          // erases
)

var roleNames = []string{"nobody", "reader", "writer", "operator", "admin"}

// String returns the name of the role.
func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("role(%d)", int(r))
	}
	return roleNames[r]
}

// ParseRole reads the name of a role that a key may have.
func ParseRole(name string) (Role, error) {
	if i := slices.Index(roleNames, name); i > int(Anonymous) {
		return Role(i), nil
	}
	return Anonymous, fmt.Errorf("role: %q is none of %s", name, strings.Join(roleNames[1:], ", "))
}

// MarshalText implements [encoding.TextMarshaler].
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}

// Limits bound what one key asks for. Zero leaves a bound to the configuration.
type Limits struct {
	// Rate is the number of requests per second, Burst how many may come at once;
	// a Burst of 0 is one second of Rate.
	Rate  float64 `json:"rate,omitempty" yaml:"rate"`
	Burst int     `json:"burst,omitempty" yaml:"burst"`
	// Daily is the number of requests from one midnight UTC to the next.
	Daily int64 `json:"daily,omitempty" yaml:"daily"`
	// MaxBody is the largest request body in bytes; http.max_body bounds it too.
	MaxBody int64 `json:"max_body,omitempty" yaml:"max_body"`
}

// Validate refuses negative bounds.
func (l Limits) Validate() error {
	if l.Rate < 0 || l.Burst < 0 || l.Daily < 0 || l.MaxBody < 0 {
		return errors.New("limits: rate, burst, daily and max_body must not be negative")
	}
	return nil
}

// or fills the bounds that l leaves open.
func (l Limits) or(o Limits) Limits {
	if l.Rate == 0 {
		l.Rate, l.Burst = o.Rate, max(l.Burst, o.Burst)
	}
	if l.Daily == 0 {
		l.Daily = o.Daily
	}
	if l.MaxBody == 0 {
		l.MaxBody = o.MaxBody
	}
	return l
}

// Key is what the bucket holds of an API key: everything but the secret.
type Key struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Project is the only project that the key reaches; empty for all of them.
	Project string `json:"project,omitempty"`
	Role    Role   `json:"role"`
	// Users, where there are any, are the only users that the key reaches.
	Users []string `json:"users,omitempty"`
	// Hash is the SHA-256 of the secret, in hex.
	Hash string `json:"hash,omitempty"`
	// Former is the hash of the secret before the last rotation, which is accepted
	// until FormerUntil.
	Former      string     `json:"former,omitempty"`
	FormerUntil *time.Time `json:"former_until,omitempty"`
	Limits      Limits     `json:"limits,omitzero"`
	CreatedAt   time.Time  `json:"created_at"`
	RotatedAt   *time.Time `json:"rotated_at,omitempty"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
	RevokedAt   *time.Time `json:"revoked_at,omitempty"`
}

const maxName = 128

// Validate refuses what no caller could use.
func (k Key) Validate() error {
	if len(k.Name) > maxName {
		return fmt.Errorf("name: is longer than %d bytes", maxName)
	}
	if k.Project == "" && k.Role < Operator {
		return errors.New("project: only an operator or an admin may have the key of all projects")
	}
	if k.Project == "" && len(k.Users) > 0 {
		return errors.New("users: belong to a project; name it")
	}
	if k.Role <= Anonymous || k.Role > Admin {
		return fmt.Errorf("role: %d is no role", int(k.Role))
	}
	if len(k.Users) > 0 && k.Role > Writer {
		return fmt.Errorf("users: the work of the role %s concerns all users; leave one of both out", k.Role)
	}
	if k.Project != "" {
		if err := (scope.Selector{Project: k.Project}).Validate(); err != nil {
			return err
		}
	}
	for _, user := range k.Users {
		if err := (scope.Scope{Project: k.Project, User: user}).Validate(); err != nil {
			return err
		}
	}
	return k.Limits.Validate()
}

// usable returns why the key is not accepted at an instant, nil where it is.
func (k Key) usable(now time.Time) error {
	switch {
	case k.RevokedAt != nil:
		return ErrRevoked
	case k.ExpiresAt != nil && !now.Before(*k.ExpiresAt):
		return ErrExpired
	}
	return nil
}

// accepts reports whether a secret is that of the key, in a time that does not
// depend on where the two differ.
func (k Key) accepts(secret string, now time.Time) bool {
	sum := hashOf(secret)
	same := subtle.ConstantTimeCompare([]byte(sum), []byte(k.Hash))
	former := subtle.ConstantTimeCompare([]byte(sum), []byte(k.Former))
	if k.FormerUntil == nil || !now.Before(*k.FormerUntil) {
		former = 0
	}
	return same|former == 1
}

const (
	prefix      = "pal_"
	idBytes     = 6
	secretBytes = 32
)

// hashOf is SHA-256 without salt or stretching. Those protect secrets that people
// choose, of which there are few enough to try; a secret here is 256 random bits.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// random returns n random bytes in hex. crypto/rand never returns an error.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// token is what a caller presents: pal_<id>_<secret>.
func token(id, secret string) string { return prefix + id + "_" + secret }

// parse splits a token. It reports whether the token has the form of ours.
func parse(token string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(token, prefix)
	if !ok {
		return "", "", false
	}
	id, secret, ok = strings.Cut(rest, "_")
	return id, secret, ok && isHex(id, idBytes) && isHex(secret, secretBytes)
}

// isHex reports whether text is n bytes in lower-case hex.
func isHex(text string, n int) bool {
	return len(text) == 2*n && strings.Trim(text, "0123456789abcdef") == ""
}
