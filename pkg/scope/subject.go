package scope

import (
	"hash/fnv"
	"strings"
)

// Tokens encodes the scope as four subject tokens in the order project, user,
// agent, session, joined by dots; an absent level is "_".
func (s Scope) Tokens() string {
	return token(s.Project) + "." + token(s.User) + "." + token(s.Agent) + "." + token(s.Session)
}

func token(id string) string {
	if id == "" {
		return absent
	}
	return Encode(id)
}

// ParseTokens is the inverse of [Scope.Tokens]. The [*Error] of a token that is
// not the canonical encoding of its identifier names the level.
func ParseTokens(tokens string) (Scope, error) {
	s, err := readTokens(tokens)
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return Scope{}, err
	}
	return s, nil
}

// ParsePartialTokens reads as much of a scope as tokens name validly: any level
// may be absent, the project included. The [*Error] is that of the first level
// that is refused; that level is absent from the result and the others stand.
func ParsePartialTokens(tokens string) (Scope, error) {
	s, err := readTokens(tokens)
	for _, l := range s.refs() {
		if *l.id == "" {
			continue
		}
		if invalid := checkIdentifier(l.name, *l.id); invalid != nil {
			*l.id = ""
			if err == nil {
				err = invalid
			}
		}
	}
	return s, err
}

// readTokens decodes what it can; its error is that of the first token it
// cannot.
func readTokens(tokens string) (Scope, error) {
	var s Scope
	var first error
	parts := strings.SplitN(tokens, ".", 5)
	if len(parts) != 4 {
		return s, &Error{Level: "scope", Reason: "needs exactly the four tokens project.user.agent.session", kind: ErrToken}
	}
	for i, l := range s.refs() {
		if parts[i] == absent {
			continue
		}
		id, err := Decode(parts[i])
		if err != nil {
			if first == nil {
				first = &Error{Level: l.name, Reason: "token " + err.Error(), kind: ErrToken}
			}
			continue
		}
		*l.id = id
	}
	return s, first
}

// Partition returns the partition, 0 to n-1, that the broker's subject
// transform partition(n, project, user, agent) gives the scope: FNV-1a (32
// bit) over the concatenated tokens. All sessions of one (project, user,
// agent) share one.
func (s Scope) Partition(n int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(token(s.Project) + token(s.User) + token(s.Agent)))
	return int(h.Sum32() % uint32(n))
}
