package scope

import "strings"

// Key encodes the levels below the project as a path:
//
//	/user/{user}/session/{session}/agent/{agent}/
//
// with absent levels left out. Components are percent-encoded by [Encode], so
// that no identifier can act as a separator. The trailing slash stays: the key
// of user "alice" is no prefix of that of "aliceX". Keys of one project are
// unique per scope; a project is stored beside the key, never inside it.
func (s Scope) Key() string {
	var b strings.Builder
	b.Grow(32 + len(s.User) + len(s.Session) + len(s.Agent))
	writeSegment(&b, "user", s.User)
	writeSegment(&b, "session", s.Session)
	writeSegment(&b, "agent", s.Agent)
	b.WriteByte('/')
	return b.String()
}

func writeSegment(b *strings.Builder, name, id string) {
	if id == "" {
		return
	}
	b.WriteByte('/')
	b.WriteString(name)
	b.WriteByte('/')
	b.WriteString(Encode(id))
}

// ParseKey is the inverse of [Scope.Key]. It refuses any spelling that Key
// would not produce; the error is an [*Error].
func ParseKey(project, key string) (Scope, error) {
	s := Scope{Project: project}
	parts := strings.Split(key, "/")
	if len(parts) < 4 || len(parts)%2 != 0 || parts[0] != "" || parts[len(parts)-1] != "" {
		return Scope{}, &Error{Level: "scope", Reason: "is not a scope key"}
	}
	for i := 1; i+1 < len(parts)-1; i += 2 {
		id, err := Decode(parts[i+1])
		if err != nil {
			return Scope{}, &Error{Level: parts[i], Reason: err.Error()}
		}
		switch parts[i] {
		case "user":
			s.User = id
		case "session":
			s.Session = id
		case "agent":
			s.Agent = id
		default:
			return Scope{}, &Error{Level: "scope", Reason: "is not a scope key"}
		}
	}
	if s.Key() != key {
		return Scope{}, &Error{Level: "scope", Reason: "is not in canonical form"}
	}
	if err := s.Validate(); err != nil {
		return Scope{}, err
	}
	return s, nil
}
