package events_test

import (
	"fmt"
	"time"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func ExampleEpisodeSubject() {
	fmt.Println(events.EpisodeSubject(scope.Scope{Project: "default", User: "alice", Session: "s-1"}))
	fmt.Println(events.EpisodeSubject(scope.Scope{Project: "default", User: "Ada.L", Agent: "_"}))
	// Output:
	// palimpsest.episodes.default.alice._.s-1
	// palimpsest.episodes.default.%41da%2E%4C.%5F._
}

func ExampleEncode() {
	episode := events.EpisodeRecorded{
		Scope:   scope.Scope{Project: "default", User: "alice", Session: "s-1"},
		Role:    events.RoleUser,
		Content: "I moved to Lyon.",
	}
	meta := events.Meta{ID: "e-1", Source: "app://chat", Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	subject, header, body, err := events.Encode(meta, episode)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(subject)
	fmt.Println(header["ce-type"][0], header["ce-id"][0], header["ce-subject"][0], header["ce-time"][0])
	fmt.Println(string(body))
	// Output:
	// palimpsest.episodes.default.alice._.s-1
	// palimpsest.episode.recorded.v1 e-1 /user/alice/session/s-1/ 2026-03-04T05:06:07Z
	// {"role":"user","content":"I moved to Lyon."}
}
