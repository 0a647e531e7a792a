package e2e

import "strings"

// ending is the short id that tables show.
func ending(id string) string { return id[len(id)-8:] }

// changes changes facts by command, each named by its short id, of a user whose name
// has to be escaped everywhere.
func (i *instance) changes() {
	t := i.t
	t.Helper()
	const user = "a/b 👩‍🔬"
	i.cli("I live in Oslo.\nI like Python.\n", "publish", "--user", user, "--agent", "assistant", "--session", "s/1", "--nats", i.NATS)
	i.settled(of(i.person(user)), 2)
	var id string
	for _, f := range i.facts(of(i.person(user))) {
		if strings.Contains(f.Text, "Oslo") {
			id = ending(f.ID)
		}
	}
	for _, step := range []struct {
		want string
		args []string
	}{
		{"I live in Oslo.", []string{"episodes", "--user", user}},
		{"UPDATE " + id + " (confirmed)", []string{"confirm", id}},
		{"UPDATE " + id + " (requested)  I live in Bergen.", []string{"correct", id, "I", "live in Bergen.", "--revision", "2"}},
		{"DELETE " + id + " (requested)", []string{"forget", strings.ToUpper(id)}},
		{"closed", []string{"facts", "--user", user, "--closed"}},
		{"UPDATE " + id + " (restored)", []string{"restore", id}},
		{"accepted", []string{"end-session", "s/1", "--user", user, "--agent", "assistant"}},
		{"closed 2 facts", []string{"delete-scope", "--user", user, "--yes"}},
		{"closed 0 facts", []string{"delete-scope", "--user", "nobody", "--yes"}},
	} {
		if out := i.cli("", step.args...); !strings.Contains(out, step.want) {
			t.Errorf("%v: %q, want %q", step.args, out, step.want)
		}
	}
	refused(t, 1, "fact_conflict", "", i.remote("restore", id, "--revision", "1")...)
	for _, verb := range []string{"confirm", "restore", "forget", "explain", "history"} {
		for _, unknown := range []string{"00000000", "nobody-knows", "..", "a/b", "👩‍🔬"} {
			refused(t, 1, "not_found", "", i.remote(verb, unknown)...)
		}
	}
	refused(t, 1, "--yes", "", i.remote("delete-scope", "--user", user)...)
}
