package auth

import (
	"encoding/json"
	"slices"
	"time"
)

// Forget returns an entry of the bucket without a user in the list of a key of a project.
// A key whose list has no other user is revoked: an empty list would let it reach all of
// them. Any other entry is returned as it is. is is never called with an empty name.
func Forget(entry []byte, project string, is func(user string) bool, now time.Time) []byte {
	var k Key
	if json.Unmarshal(entry, &k) != nil || k.ID == "" || k.Project != project || !slices.ContainsFunc(k.Users, is) {
		return entry
	}
	if k.Users = slices.DeleteFunc(k.Users, is); len(k.Users) == 0 && k.RevokedAt == nil {
		at := now.UTC()
		k.RevokedAt = &at
	}
	out, err := json.Marshal(k)
	if err != nil {
		return entry // it was decoded, so it can be encoded
	}
	return out
}
