package events

import "time"

// UserErased says on AUDIT that everything of one user was removed from every place.
// Its scope names, in the place of the user, the keyed hash that the receipt has: it
// has no content. A reader that keeps copies goes by Until.
type UserErased struct {
	Header
	// Erasure is the id of the receipt.
	Erasure string `json:"erasure"`
	// Until is the last sequence of EPISODES when the user was erased.
	Until    uint64    `json:"until"`
	ErasedAt time.Time `json:"erased_at"`
}

// Kind implements [Payload].
func (UserErased) Kind() Kind { return KindUserErased }

// Validate implements [Payload].
func (u UserErased) Validate() error {
	if err := u.Header.validate(); err != nil {
		return err
	}
	switch {
	case u.Erasure == "":
		return invalid("erasure", "is required")
	case u.ErasedAt.IsZero():
		return invalid("erased_at", "is required")
	}
	return nil
}

// Identity implements [Identified]: an erasure is announced once.
func (u UserErased) Identity() []string { return []string{u.Erasure} }
