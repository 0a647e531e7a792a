package retrieval

import (
	"testing"

	"palimpsest/internal/lex"
)

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		question, text string
		fits           bool
	}{
		{"When is the party?", "We meet on the 3rd", true},
		{"What time is the train?", "It leaves at 7:40", true},
		{"When is the party?", "It costs 400 crowns", false},
		{"How much was the piano?", "It cost £90", true},
		{"How much was the piano?", "He gave me sixty quid for it", true},
		{"How much was the piano?", "We moved it in March", false},
		{"How many goats are there?", "There are seven of them", true},
		{"How old is the house?", "No one knows", false},
		{"Where is the workshop?", "I rent a room in Kaunas", true},
		{"Where is the workshop?", "I like it a lot", false},
		{"Where is the workshop?", "It opens in May", false},
		{"Who is there?", "Seven of them on the 3rd in Kaunas", false},
	} {
		asked := expected(lex.Words(tc.question))
		if got := asked&kindsIn(tc.text, termsOf(tc.text)) != 0; got != tc.fits {
			t.Errorf("%q answers %q: %v, want %v", tc.text, tc.question, got, tc.fits)
		}
	}
}

func TestAboutOther(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Jonas drives our van":        "jona",
		"Jonas can't eat nuts":        "jona",
		"Rita's goat is called Bruno": "rita",
		"She works at the mill":       "she",
		"Jonas and I met in Kaunas":   "",
		"Good news, I have a van":     "",
		"I drive a van":               "",
		"The van is old":              "",
		"It's an old van":             "",
		"My van is old":               "",
		"Moved to Kaunas in May":      "",
		"Yes":                         "",
		"":                            "",
	} {
		if got := aboutOther(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
