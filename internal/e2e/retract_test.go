package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/pkg/api"
)

// retractions: a retracted like is closed, in many wordings. Similar sentences
// change nothing.
func retractions(t *testing.T, i *instance) {
	for n, r := range []struct {
		known, said string
		stays       bool
	}{
		{"I like coffee.", "I don't like coffee anymore.", false},
		{"I love coffee.", "I no longer like coffee.", false},
		{"I like coffee.", "I've stopped liking coffee.", false},
		{"I enjoy coffee.", "I used to like coffee.", false},
		{"I'm a big fan of coffee.", "I'm not a fan of coffee any more.", false},
		{"I like drinking coffee.", "I've lost my taste for coffee.", false},
		{"Мне нравится кофе.", "Я разлюбил кофе.", false},
		{"I like coffee.", "I like coffee no less.", true},
		{"I like coffee.", "I don't like coffee any less.", true},
		{"I like coffee.", "I never stopped liking coffee.", true},
		{"I like coffee.", "My sister no longer likes coffee.", true},
		{"I like coffee.", "I no longer like tea.", true},
	} {
		t.Run(fmt.Sprintf("%s %s", r.known, r.said), func(t *testing.T) {
			t.Parallel()
			who := i.person(fmt.Sprintf("row%d", n))
			on, sel := i.in(t), of(who)
			on.say(who, turn(r.known))
			on.settled(sel, 1)
			likes := func(f api.Fact) bool {
				return f.Subject == "user" && f.Predicate == "likes" && (strings.Contains(f.Object, "coffee") || f.Object == "кофе")
			}
			if before := on.facts(sel); !slices.ContainsFunc(before, likes) {
				t.Fatalf("%q gives %q", r.known, texts(before))
			}
			on.say(who, turn(r.said))
			on.settled(sel, 2)
			if after := on.facts(sel); slices.ContainsFunc(after, likes) != r.stays {
				t.Errorf("known %q; that it is liked should stay: %v", texts(after), r.stays)
			}
		})
	}
}
