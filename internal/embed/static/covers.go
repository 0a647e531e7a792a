package static

import "unicode"

// Covers reports whether the table of this package has vectors for a text's words: it
// was made from English, and reads other scripts than Latin letter by letter. A text
// counts by most of its letters.
func Covers(text string) bool {
	known, other := 0, 0
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Latin, r):
			known++
		case unicode.IsLetter(r):
			other++
		}
	}
	return known >= other
}
