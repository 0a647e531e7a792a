package filter

import "fmt"

// Error says what of a filter is refused.
type Error struct {
	// Path is the JSON path below the filter, as in .AND[1].field; empty in a WHERE
	// fragment.
	Path string
	// Offset is the position in a WHERE fragment in characters, from 1; 0 in JSON.
	Offset int
	Reason string
}

func (e *Error) Error() string {
	switch {
	case e.Offset > 0:
		return fmt.Sprintf("filter: at character %d: %s", e.Offset, e.Reason)
	case e.Path != "":
		return "filter: " + e.Path + ": " + e.Reason
	}
	return "filter: " + e.Reason
}

func refuse(format string, args ...any) *Error { return &Error{Reason: fmt.Sprintf(format, args...)} }
