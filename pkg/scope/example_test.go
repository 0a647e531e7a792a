package scope_test

import (
	"fmt"

	"palimpsest/pkg/scope"
)

// A scope names the owner of a datum. Its key is unambiguous for all identifiers.
func ExampleScope_Key() {
	s := scope.Scope{Project: "default", User: "Nora", Agent: "assistant", Session: "a/b"}
	fmt.Println(s.Key())
	// Output: /user/%4Eora/session/a%2Fb/agent/assistant/
}
