package memory

import "strings"

// The marks around memory that was injected into a conversation. Context
// assembly writes them; extraction blanks what stands between them, so that
// memory does not feed on itself.
const (
	ContextOpen  = "<palimpsest-context>"
	ContextClose = "</palimpsest-context>"
)

// BlankContext replaces injected memory by line breaks, byte for byte, so that
// offsets stay those of the original. A mark that is not closed reaches to the
// end.
func BlankContext(s string) string {
	from := strings.Index(s, ContextOpen)
	if from < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for from >= 0 {
		b.WriteString(s[:from])
		end := len(s)
		if i := strings.Index(s[from:], ContextClose); i >= 0 {
			end = from + i + len(ContextClose)
		}
		b.WriteString(strings.Repeat("\n", end-from))
		s = s[end:]
		from = strings.Index(s, ContextOpen)
	}
	b.WriteString(s)
	return b.String()
}
