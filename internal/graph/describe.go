package graph

import (
	"fmt"
	"strings"

	"palimpsest/pkg/events"
)

// described is how many facts a description tells.
const described = 5

// Describe returns a few sentences on an entity: its type, the time and number of its
// mentions, and its first facts. It is a function of its arguments.
func Describe(e events.Entity, facts []string) string {
	var b strings.Builder
	kind := string(e.Type)
	if kind == "" {
		kind = "thing"
	}
	article := "a"
	if strings.ContainsRune("aeiou", rune(kind[0])) {
		article = "an"
	}
	fmt.Fprintf(&b, "%s is %s %s", e.CanonicalName, article, kind)
	if len(e.Aliases) > 0 {
		fmt.Fprintf(&b, ", also called %s", strings.Join(e.Aliases, ", "))
	}
	times := "once"
	if e.MentionCount != 1 {
		times = fmt.Sprintf("%d times", e.MentionCount)
	}
	fmt.Fprintf(&b, ", mentioned %s since %s.", times, e.FirstSeen.UTC().Format("2006-01-02"))
	for _, text := range facts[:min(len(facts), described)] {
		b.WriteString(" " + text)
	}
	return b.String()
}
