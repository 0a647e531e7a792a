package client_test

import (
	"context"
	"fmt"
	"log"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

// Record with Wait returns the changes that the messages led to.
func ExampleClient_Record() {
	memory, err := client.New("http://127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	written, err := memory.Record(context.Background(), api.Record{
		Scope:    api.Scope{User: "nora", Agent: "assistant", Session: "s1"},
		Messages: api.Messages{{Role: "user", Content: "I moved to Bergen last week."}},
		Wait:     true,
	}, "")
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range written.Results {
		fmt.Println(r.Event, r.Memory)
	}
}
