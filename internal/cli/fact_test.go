package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
)

// TestChanges checks the request and the output of each command that changes
// facts.
func TestChanges(t *testing.T) {
	t.Parallel()
	const id = "0190a6a0-0000-7000-8000-0000deadbeef"
	one, many := 1, 4
	for name, c := range map[string]struct {
		args   []string
		sent   string
		answer api.Written
		out    string
	}{
		"correct": {
			args: []string{"correct", "deadbeef", "I", "live in 東京 👩‍🔬.", "--revision", "3", "--object", "東京"},
			sent: `POST /v1/facts/deadbeef/correct?project=default "3" {"text":"I live in 東京 👩‍🔬.","object":"東京"}`,
			answer: api.Written{Status: "done", Results: []api.Result{
				{Event: "UPDATE", ID: id, Reason: "requested", Memory: "I live in\n東京 👩‍🔬.\x1b[31m"},
			}},
			out: "UPDATE deadbeef (requested)  I live in 東京 👩‍🔬. [31m\n",
		},
		"confirm": {
			args: []string{"confirm", "a/b?👍"}, sent: "POST /v1/facts/a%2Fb%3F%F0%9F%91%8D/confirm?project=default  ",
			answer: api.Written{Status: "accepted"}, out: "accepted\n",
		},
		"restore": {
			args: []string{"restore", ".."}, sent: "POST /v1/facts/%2E%2E/restore?project=default  ",
			answer: api.Written{Results: []api.Result{{Event: "UPDATE", ID: "not-hex-at-all", Reason: "restored", Memory: "x"}}},
			out:    "UPDATE not-hex-at-all (restored)  x\n",
		},
		"forget": {
			args: []string{"--project", "p/q", "forget", id}, sent: "DELETE /v1/facts/" + id + "?project=p%2Fq  ",
			answer: api.Written{Results: []api.Result{{Event: "DELETE", ID: id, Reason: "requested", OldMemory: "old"}}},
			out:    "DELETE deadbeef (requested)  old\n",
		},
		"end-session": {
			args:   []string{"end-session", "s/1", "--user", "a/b 👩‍🔬", "--cause", "timeout"},
			sent:   `POST /v1/sessions/s%2F1/end?project=default  {"user":"a/b 👩‍🔬","session":"s/1","cause":"timeout"}`,
			answer: api.Written{Status: "accepted"}, out: "accepted\n",
		},
		"delete-scope": {
			args:   []string{"delete-scope", "--user", "a/b", "--agent", "", "--yes"},
			sent:   "DELETE /v1/scopes?agent=&project=default&user=a%2Fb  ",
			answer: api.Written{Status: "done", Closed: &many}, out: "closed 4 facts\n",
		},
		"delete-scope of one": {
			args: []string{"delete-scope", "--session", "s", "--yes"}, sent: "DELETE /v1/scopes?project=default&session=s  ",
			answer: api.Written{Status: "done", Closed: &one}, out: "closed 1 fact\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent string
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = strings.Join([]string{r.Method, r.URL.EscapedPath() + "?" + r.URL.RawQuery, r.Header.Get("If-Match"), string(body)}, " ")
				_ = json.NewEncoder(w).Encode(c.answer)
			})
			code, out, complaint := call(t, append([]string{"--server", address}, c.args...)...)
			if code != exitOK || out != c.out || complaint != "" {
				t.Errorf("code %d, output %q, complaint %q; want %q", code, out, complaint, c.out)
			}
			if diff := cmp.Diff(c.sent, sent); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			_, out, _ = call(t, append([]string{"--server", address, "--json"}, c.args...)...)
			var again api.Written
			if err := json.Unmarshal([]byte(out), &again); err != nil {
				t.Fatalf("--json: %v: %s", err, out)
			}
			if diff := cmp.Diff(c.answer, again); diff != "" {
				t.Errorf("--json (-want +got):\n%s", diff)
			}
		})
	}
}

// TestProblemsAreOneLine checks that commands print an error of the server in one
// line, with its code.
func TestProblemsAreOneLine(t *testing.T) {
	t.Parallel()
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		p := api.NewProblem(http.StatusBadRequest, api.CodeInvalidField, "id", "deadbeef is the end of 2 ids: a (x), b (y)")
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p)
	})
	for _, args := range [][]string{
		{"correct", "deadbeef", "x"}, {"confirm", "deadbeef"}, {"restore", "deadbeef"}, {"forget", "deadbeef"}, {"explain", "deadbeef"},
		{"history", "deadbeef"}, {"facts", "deadbeef"}, {"holds", "release", "deadbeef"}, {"delete-scope", "--user", "x", "--yes"},
	} {
		code, out, complaint := call(t, append([]string{"--server", address}, args...)...)
		if code != exitError || out != "" || complaint != "palimpsest: invalid_field: id: deadbeef is the end of 2 ids: a (x), b (y)\n" {
			t.Errorf("%v: code %d, output %q, complaint %q", args, code, out, complaint)
		}
	}
}

func TestStatesOfFacts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	past, future := now.Add(-3*time.Hour-time.Minute), now.Add(time.Hour)
	page := api.FactPage{Facts: []api.Fact{
		{ID: "0190a6a0-0000-7000-8000-0000deadbeef", Revision: 1, Category: "c", Text: "a", Confidence: 1, ValidFrom: past},
		{ID: "f2", Revision: 2, Category: "c", Text: "b", Confidence: 0.5, ValidFrom: past, ValidUntil: &past},
		{ID: "f3", Revision: 2, Category: "c", Text: "c", Confidence: 0.5, ValidFrom: past, ValidUntil: &future, ArchivedAt: &past},
	}}
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(page) })
	_, out, _ := call(t, "--server", address, "facts", "--all-users", "--closed")
	want := "" +
		"ID        REV  CATEGORY  TEXT  CONFIDENCE  SINCE        STATE\n" +
		"deadbeef  1    c         a     1.00        3 hours ago  known\n" +
		"f2        2    c         b     0.50        3 hours ago  closed 3 hours ago\n" +
		"f3        2    c         c     0.50        3 hours ago  archived 3 hours ago\n"
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEpisodes(t *testing.T) {
	t.Parallel()
	var asked string
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		_ = json.NewEncoder(w).Encode(api.EpisodePage{Next: "c2", Episodes: []api.Episode{
			{ID: "0190a6a000007000800000000badcafe", Scope: api.Scope{User: "a/b"}, Role: "user", Content: "hi\nthere", Timestamp: time.Now().Add(-61 * time.Second)},
		}})
	})
	_, out, complaint := call(t, "--server", address, "episodes", "--user", "a/b", "--after", "2026-03-01", "--before", "2026-04-01", "--cursor", "c1")
	want := "ID        WHEN          USER  AGENT  SESSION  ROLE  CONTENT\n" +
		"0badcafe  1 minute ago  a/b                   user  hi there\nmore: --cursor c2\n"
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("%s (-want +got):\n%s", complaint, diff)
	}
	if want := "after=2026-03-01T00%3A00%3A00Z&before=2026-04-01T00%3A00%3A00Z&cursor=c1&limit=20&project=default&user=a%2Fb"; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
}

// TestExplainTellsTheAddFirst: what changed nothing comes after it.
func TestExplainTellsTheAddFirst(t *testing.T) {
	t.Parallel()
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Explanation{
			Fact:      api.Fact{ID: "f", Revision: 1, Text: "Nora lives in Oslo."},
			Decisions: []api.Change{{Event: "ADD", Reason: "new"}, {Event: "NONE", Reason: "duplicate"}},
		})
	})
	_, out, _ := call(t, "--server", address, "explain", "f")
	add, none := strings.Index(out, "decided: ADD (new)"), strings.Index(out, "decided: NONE (duplicate)")
	if add < 0 || none < add {
		t.Errorf("%s", out)
	}
}
