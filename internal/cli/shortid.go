package cli

import "strings"

// shortLength is how many digits of an id a table shows. The server takes them in
// place of the id.
const shortLength = 8

// shortID returns the last digits of an id; an id that does not end in hex digits
// is returned whole.
func shortID(id string) string {
	if len(id) <= shortLength {
		return id
	}
	end := id[len(id)-shortLength:]
	if strings.Trim(end, "0123456789abcdef") != "" {
		return id
	}
	return end
}
