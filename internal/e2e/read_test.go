package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// export returns the canonical export of a scope.
func (i *instance) export(sel scope.Selector, content bool) string {
	i.t.Helper()
	var out strings.Builder
	for line, err := range i.project(sel).Export(i.t.Context(), sel, content) {
		if err != nil {
			i.t.Fatal(err)
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return out.String()
}

// effects replays the audit stream of a scope. That they decode is a check:
// a delta that lacks a part of its provenance does not.
func (i *instance) effects(sel scope.Selector) []events.EffectCommitted {
	i.t.Helper()
	var out []events.EffectCommitted
	for line, err := range i.project(sel).Audit(i.t.Context(), sel, 0) {
		if err != nil {
			i.t.Fatal(err)
		}
		var e events.EffectCommitted
		if err := json.Unmarshal(line.Data, &e); err != nil {
			i.t.Fatalf("audit line %d: %v", line.Sequence, err)
		}
		out = append(out, e)
	}
	return out
}

// recent reads every episode of a scope, newest first.
func (i *instance) recent(sel scope.Selector) []api.Episode {
	i.t.Helper()
	var out []api.Episode
	for cursor := ""; ; {
		page, err := i.project(sel).Recent(i.t.Context(), sel, client.ListEpisodes{Limit: 500, Cursor: cursor})
		if err != nil {
			i.t.Fatal(err)
		}
		out = append(out, page.Episodes...)
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

// buried waits until at least n messages lie in the dead letters, and returns
// all of them.
func (i *instance) buried(n int) []api.DeadLetter {
	i.t.Helper()
	var out []api.DeadLetter
	eventually(i.t, fmt.Sprintf("%d dead letters", n), func() error {
		out = nil
		for after := uint64(0); ; {
			page, err := i.api.DeadLetters(i.t.Context(), client.ListLetters{After: after, Limit: 500})
			if err != nil {
				return err
			}
			out = append(out, page.Letters...)
			if after = page.Next; after == 0 {
				break
			}
		}
		if len(out) < n {
			return fmt.Errorf("there are %d", len(out))
		}
		return nil
	})
	return out
}

// of selects all that one user said and is known of them, whatever the session.
func of(who scope.Scope) scope.Selector {
	return scope.Selector{Project: who.Project, User: &who.User}
}

// everything selects a whole project.
func everything(project string) scope.Selector { return scope.Selector{Project: project, All: true} }

func contents(episodes []api.Episode) []string {
	out := make([]string, len(episodes))
	for n, e := range episodes {
		out[n] = e.Content
	}
	return out
}
