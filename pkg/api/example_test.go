package api_test

import (
	"encoding/json"
	"fmt"

	"palimpsest/pkg/api"
)

// Messages may be one text, one message or a list of messages.
func ExampleMessages() {
	var r api.Record
	if err := json.Unmarshal([]byte(`{"user":"nora","messages":"I like Python.","wait":true}`), &r); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.User, len(r.Messages), r.Messages[0].Content)
	// Output: nora 1 I like Python.
}
