package scope

import (
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// DefaultProject is the tenant of an installation that configures none.
const DefaultProject = "default"

// MaxIdentifier is the longest identifier of any level, in bytes of UTF-8.
const MaxIdentifier = 256

// Scope names whose a datum is. An empty level is absent; nothing is ever
// filed under a default user, agent or session. Identifiers are compared byte
// by byte: no case folding and no Unicode normalisation.
type Scope struct {
	Project string `json:"project"`
	User    string `json:"user,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
}

// Error says which level of a scope is refused and why. Level is one of
// "scope", "project", "user", "agent", "session".
type Error struct {
	Level  string
	Reason string
	kind   error
}

// The kinds of [Error] that callers tell apart with [errors.Is]; any other is
// an identifier or a key that is refused.
var (
	// ErrMissing: the project, or every level below it, is absent.
	ErrMissing = errors.New("scope: incomplete")
	// ErrToken: a subject token is not the canonical encoding of an identifier.
	ErrToken = errors.New("scope: not a canonical token")
)

func (e *Error) Error() string { return "scope: " + e.Level + ": " + e.Reason }

// Unwrap returns [ErrMissing], [ErrToken] or nil.
func (e *Error) Unwrap() error { return e.kind }

// Validate refuses a scope without a project, one that names neither user,
// agent nor session, and any identifier that is not valid UTF-8 of 1 to
// [MaxIdentifier] bytes without control characters. The error is an [*Error].
func (s Scope) Validate() error {
	if s.Project == "" {
		return &Error{Level: "project", Reason: "is required", kind: ErrMissing}
	}
	if s.User == "" && s.Agent == "" && s.Session == "" {
		return &Error{Level: "scope", Reason: "needs at least one of user, agent, session", kind: ErrMissing}
	}
	for _, l := range s.levels() {
		if l.value == "" {
			continue
		}
		if err := checkIdentifier(l.name, l.value); err != nil {
			return err
		}
	}
	return nil
}

// Fact returns the scope under which facts from s are filed: (project, user,
// agent) when a user is named; without a user but with a session (project,
// agent, session), so that anonymous visitors never share facts; else (project,
// agent). It is the unit of order, ordinals, watermarks, revisions and atomic
// apply, and it is idempotent: s.Fact().Fact() == s.Fact().
func (s Scope) Fact() Scope {
	if s.User != "" {
		s.Session = ""
	}
	return s
}

// IsFact reports whether s is a fact scope, that is s == s.Fact().
func (s Scope) IsFact() bool { return s == s.Fact() }

// String is the scope for people and logs; see [Scope.Key] for storage.
func (s Scope) String() string { return Encode(s.Project) + s.Key() }

type level struct{ name, value string }

func (s Scope) levels() [4]level {
	return [4]level{
		{"project", s.Project},
		{"user", s.User},
		{"agent", s.Agent},
		{"session", s.Session},
	}
}

type levelRef struct {
	name string
	id   *string
}

func (s *Scope) refs() [4]levelRef {
	return [4]levelRef{
		{"project", &s.Project},
		{"user", &s.User},
		{"agent", &s.Agent},
		{"session", &s.Session},
	}
}

func checkIdentifier(level, id string) error {
	if len(id) > MaxIdentifier {
		return &Error{Level: level, Reason: fmt.Sprintf("is %d bytes long, more than %d", len(id), MaxIdentifier)}
	}
	if !utf8.ValidString(id) {
		return &Error{Level: level, Reason: "is not valid UTF-8"}
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return &Error{Level: level, Reason: fmt.Sprintf("contains the control character %U", r)}
		}
	}
	return nil
}
