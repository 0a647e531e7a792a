package bench

import (
	"encoding/json"
	"fmt"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// floodScopes is over how many scopes a flood spreads, in turns.
const floodScopes = 200

// statements are sentences of users about themselves. Each leads to a fact, some of
// which replace an earlier one. %s is a name that occurs once.
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
	record  api.Record // the same over HTTP
}

// flood makes n messages, the same for every run.
func flood(n int) []message {
	all := make([]message, n)
	for i := range all {
		text := fmt.Sprintf(statements[i/floodScopes%len(statements)], name(i))
		all[i] = say("flood", i%floodScopes, text)
	}
	return all
}

// say is a message of the nth user of a group.
func say(group string, n int, text string) message {
	who := scope.Scope{
		Project: scope.DefaultProject, User: fmt.Sprintf("%s%03d", group, n), Agent: "assistant", Session: "s1",
	}
	body, err := json.Marshal(map[string]string{"role": string(events.RoleUser), "content": text})
	if err != nil {
		panic(err) // two strings
	}
	return message{events.EpisodeSubject(who), body, api.Record{Scope: api.ScopeOf(who), Messages: api.Messages{{Content: text}}}}
}
