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
	parts := strings.Split(tokens, ".")
	if len(parts) != 4 {
		return Scope{}, &Error{Level: "scope", Reason: "needs exactly the four tokens project.user.agent.session"}
	}
	var ids [4]string
	for i, name := range [4]string{"project", "user", "agent", "session"} {
		if parts[i] == absent {
			continue
		}
		id, err := Decode(parts[i])
		if err != nil {
			return Scope{}, &Error{Level: name, Reason: "token " + err.Error()}
		}
		ids[i] = id
	}
	s := Scope{Project: ids[0], User: ids[1], Agent: ids[2], Session: ids[3]}
	return s, s.Validate()
}

// Partition returns the partition, 0 to n-1, that the broker's subject
// transform partition(n, project, user, agent) gives the scope: FNV-1a (32
// bit) over the concatenated tokens. All sessions of one (project, user,
// agent) share one.
func (s Scope) Partition(n int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(token(s.Project) + token(s.User) + token(s.Agent)))
	return int(h.Sum32() % uint32(n)) //nolint:gosec // n is a small positive partition count
}
