package query

import (
	"errors"
	"testing"

	"palimpsest/internal/audit"
	"palimpsest/internal/auth"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

// TestUndoOfASessionLeavesCorrections: a later correction keeps the sessions of its fact,
// and an undo of one of them does not choose it.
func TestUndoOfASessionLeavesCorrections(t *testing.T) {
	t.Parallel()
	of := func(sessions ...string) *events.Fact { return &events.Fact{SessionIDs: sessions} }
	c := criteria{Undo: api.Undo{Session: "s"}, episodes: map[episodeKey]bool{{id: "e1"}: true}}
	for name, tt := range map[string]struct {
		audit.Record
		want bool
	}{
		"its message":            {audit.Record{Sources: []string{"e1"}, After: of("s")}, true},
		"another message":        {audit.Record{Sources: []string{"e2"}, After: of("s")}, false},
		"stated in it":           {audit.Record{After: of("s")}, true},
		"stated again in it":     {audit.Record{Before: of("r"), After: of("r", "s")}, true},
		"stated elsewhere":       {audit.Record{After: of("r")}, false},
		"corrected or confirmed": {audit.Record{Before: of("s"), After: of("s")}, false},
		"closed":                 {audit.Record{Before: of("s")}, false},
	} {
		if got := c.chooses(tt.Record); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUndoOfARequestIsExact: the beginning of an id chooses no other request.
func TestUndoOfARequestIsExact(t *testing.T) {
	t.Parallel()
	const request = "0190abcd-1111-4222-8333-444455556666"
	for id, want := range map[string]bool{
		request:                              true,
		derived(request, "a scope"):          true,
		derived(request, "a scope") + "0":    false,
		"0190abcd-1111-4222-8333-4444555566": false,
		"other":                              false,
	} {
		if got := belongsTo(id, request); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
	for _, part := range []string{"0190abcd", "0190abcd-1111", "import"} {
		if belongsTo(request, part) || belongsTo("import-2", part) {
			t.Errorf("%s is taken for the id of a request", part)
		}
	}
}

// TestQuarantineIsOperators: a writer cannot begin a quarantine, and so cannot release or
// dismiss the candidates that it holds. Not even an operator takes its mark out of one
// buffer.
func TestQuarantineIsOperators(t *testing.T) {
	t.Parallel()
	mark := events.Hold{Why: events.WhyQuarantine, Distrust: &events.Distrust{Session: "s"}}
	kept := events.Hold{Why: events.WhyQuarantined}
	for _, tt := range []struct {
		role auth.Role
		events.Hold
		code string
	}{
		{auth.Writer, events.Hold{Why: "hedged"}, ""},
		{auth.Writer, kept, api.CodeForbidden},
		{auth.Operator, kept, ""},
		{auth.Writer, mark, api.CodeInvalidField},
		{auth.Admin, mark, api.CodeInvalidField},
	} {
		err := mayEnd(auth.With(t.Context(), auth.Caller{Role: tt.role, Project: "default"}), tt.Hold)
		code := ""
		if p := (*api.Problem)(nil); errors.As(err, &p) {
			code = p.Code
		}
		if code != tt.code {
			t.Errorf("%s, %q: %v, want %q", tt.role, tt.Why, err, tt.code)
		}
	}
}
