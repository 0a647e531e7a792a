package bench

import (
	"encoding/json"
	"fmt"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// floodScopes is over how many scopes a flood spreads, in turns.
const floodScopes = 200

// statements are what users say of themselves: each gives a fact, some of them
// in place of an earlier one. %s is a name of its own.
var statements = []string{
	"I like %s.",
	"By the way, I work at %s Labs these days.",
	"My dog is called %s.",
	"I live in %s now.",
	"I'm learning to play the %s, it is harder than I thought.",
	"My sister's name is %s.",
	"I have never liked %s, to be honest.",
	"I prefer %s over anything else in the morning.",
}

// message is one publish of a flood.
type message struct {
	subject string
	body    []byte
}

// flood makes n messages, the same for every run.
func flood(n int) []message {
	all := make([]message, n)
	for i := range all {
		who := scope.Scope{
			Project: scope.DefaultProject, User: fmt.Sprintf("flood%03d", i%floodScopes), Agent: "assistant", Session: "s1",
		}
		turn := i / floodScopes
		text := fmt.Sprintf(statements[turn%len(statements)], name(i))
		body, err := json.Marshal(map[string]string{"role": string(events.RoleUser), "content": text})
		if err != nil {
			panic(err) // two strings
		}
		all[i] = message{events.EpisodeSubject(who), body}
	}
	return all
}
