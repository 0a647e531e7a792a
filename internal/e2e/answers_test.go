package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// aheadClock: a statement from a clock that says 2099 counts as said when it
// arrived, so that the statements that follow it hold, now and later.
func aheadClock(t *testing.T, i *instance) {
	who := i.person("ann")
	sel := of(who)
	i.publish(who, "", map[string]any{"content": "I live in Oslo.", "timestamp": "2099-01-01T00:00:00Z"})
	i.settled(sel, 1)
	i.publish(who, "", map[string]any{"content": "I moved to Lisbon.", "timestamp": time.Now().Format(time.RFC3339Nano)})
	i.say(who, "I moved to Bergen.")
	i.settled(sel, 3)
	if f := wantOne(t, i.facts(sel), "Bergen"); f.ValidFrom.After(time.Now()) || f.Revision != 3 {
		t.Errorf("%+v", f)
	}
	said := i.recent(sel)
	clamped := slices.IndexFunc(said, func(e api.Episode) bool { return e.Clamped })
	if clamped < 0 || !said[clamped].Timestamp.Equal(said[clamped].ArrivedAt) || said[clamped].Content != "I live in Oslo." {
		t.Errorf("%+v", said)
	}
}

// knownID: a message whose id is stored with other content is refused while its
// caller listens; the same message again is no conflict.
func knownID(t *testing.T, i *instance) {
	who := i.person("ann")
	record := func(content string) (api.Written, error) {
		return i.api.Record(t.Context(), api.Record{
			Scope: api.ScopeOf(who), Messages: api.Messages{{ID: "m1", Content: content}}, Wait: true,
		}, "")
	}
	for range 2 {
		if w, err := record("I live in Oslo."); err != nil || w.Status != "done" {
			t.Fatalf("%+v, %v", w, err)
		}
	}
	_, err := record("I live in Bergen.")
	wantProblem(t, "another text", err, http.StatusConflict, api.CodeIDConflict)
	i.settled(of(who), 1)
	wantOne(t, i.facts(of(who)), "Oslo")
	if letters := i.buried(0); len(letters) > 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// deletesByLevel: a level that a delete leaves out matches any, so that it closes
// the facts of every agent. Its answer has the count.
func deletesByLevel(t *testing.T, i *instance) {
	ann, ben := i.person("ann"), i.person("ben")
	other := ann
	other.Agent, other.Session = "coach", "s2"
	i.say(ann, "I live in Oslo.", "I like tea.")
	i.say(other, "I like jazz.")
	i.say(ben, "I live in Lisbon.")
	i.settled(of(ann), 3)
	i.settled(of(ben), 1)
	remove := func(sel scope.Selector, want int) {
		t.Helper()
		w, err := i.project(sel).DeleteScope(t.Context(), sel, "")
		if err != nil || w.Status != "done" || w.Closed == nil || *w.Closed != want {
			t.Fatalf("delete of %s: %+v, %v", sel, w, err)
		}
	}
	session := "s2"
	remove(scope.Selector{Project: i.tenant, Session: &session}, 1)
	if left := i.facts(of(ann)); len(left) != 2 {
		t.Errorf("after the session: %q", texts(left))
	}
	remove(of(ann), 2)
	if left := i.facts(of(ann)); len(left) != 0 {
		t.Errorf("after the user: %q", texts(left))
	}
	remove(of(ann), 0)
	wantOne(t, i.facts(of(ben)), "Lisbon")
	wantReplayed(t, i, i.whole())
}

// thePastIsRead: a read about an instant gives what was true then, in the version
// of then, in lists and in searches.
func thePastIsRead(t *testing.T, i *instance) {
	who := i.person("ann")
	sel := of(who)
	days := func(n int) time.Time { return time.Now().Add(time.Duration(-n) * 24 * time.Hour).Truncate(time.Second) }
	i.publish(who, "", map[string]any{"content": "I live in Oslo.", "timestamp": days(10).Format(time.RFC3339)})
	i.settled(sel, 1)
	i.publish(who, "", map[string]any{"content": "I moved to Bergen.", "timestamp": days(5).Format(time.RFC3339)})
	i.settled(sel, 2)
	now := wantOne(t, i.facts(sel), "Bergen")
	for at, city := range map[time.Time]string{days(7): "Oslo", days(3): "Bergen", days(12): ""} {
		page, err := i.project(sel).Facts(t.Context(), sel, client.ListFacts{ValidAt: at})
		if err != nil {
			t.Fatal(err)
		}
		found, err := i.project(sel).Search(t.Context(), api.Search{
			Selector: api.Selector{User: &who.User}, Text: "where does the user live?", Types: []string{"fact"}, ValidAt: &api.Instant{Time: at},
		})
		if err != nil || len(found.Degraded) > 0 {
			t.Fatalf("%+v, %v", found, err)
		}
		if city == "" {
			if len(page.Facts) > 0 || len(found.Results) > 0 {
				t.Errorf("before anything was true: %q, %+v", texts(page.Facts), found.Results)
			}
			continue
		}
		if f := wantOne(t, page.Facts, city); f.ID != now.ID {
			t.Errorf("%s is another fact than %s", f.ID, now.ID)
		}
		if len(found.Results) != 1 || found.Results[0].ID != now.ID || !strings.Contains(found.Results[0].Text, city) {
			t.Errorf("search at %s: %+v", at, found.Results)
		}
	}
}

// TestIncognitoEpisodesLeaveNoTrace looks for an incognito episode in the files of
// the embedded shape, before and after a restart.
func TestIncognitoEpisodesLeaveNoTrace(t *testing.T) {
	t.Parallel()
	const secret = "quokkas in the cellar"
	i := start(t, t.TempDir())
	ann := person("ann")
	i.say(ann, "I live in Oslo.")
	i.settled(of(ann), 1)
	i.publish(ann, "", map[string]any{"content": "I keep " + secret + ".", "mode": "incognito"})
	if l := i.buried(1)[0]; l.Field != "mode" || l.Service != "ingest" {
		t.Errorf("%+v", l)
	}
	gone := func() error { return without(i.data, secret) }
	eventually(t, "no file with the text", gone)
	// Over HTTP it is taken, shown in its session alone, and written nowhere.
	said := `{"user":"ann","session":"dark","messages":[{"id":"m1","content":"I keep ` + secret + `.","mode":"incognito"}]}`
	for range 2 {
		if status, answer := i.ask(http.MethodPost, "/v1/episodes", said); status != http.StatusOK || !strings.Contains(fmt.Sprint(answer), "done") {
			t.Fatalf("%d %v", status, answer)
		}
	}
	shown := func(want int, method, path, body string) {
		t.Helper()
		if status, answer := i.ask(method, path, body); status != http.StatusOK || strings.Count(fmt.Sprint(answer), secret) < want ||
			want == 0 && strings.Contains(fmt.Sprint(answer), secret) {
			t.Errorf("%s %s: %d %v", path, body, status, answer)
		}
	}
	shown(1, http.MethodGet, "/v1/episodes?user=ann&session=dark", "")
	shown(1, http.MethodPost, "/v1/search", `{"user":"ann","session":"dark","text":"what is in the cellar?"}`)
	shown(0, http.MethodGet, "/v1/episodes?user=ann", "")
	shown(0, http.MethodGet, "/v1/episodes?user=ann&session=light", "")
	shown(0, http.MethodGet, "/v1/episodes?user=bob&session=dark", "")
	shown(0, http.MethodPost, "/v1/search", `{"user":"ann","text":"what is in the cellar?"}`)
	shown(0, http.MethodGet, "/v1/export?user=ann", "")
	if err := gone(); err != nil {
		t.Error(err)
	}
	i.restart()
	shown(0, http.MethodGet, "/v1/episodes?user=ann&session=dark", "")
	i.say(ann, "I moved to Bergen.")
	i.settled(of(ann), 2)
	wantOne(t, i.facts(of(ann)), "Bergen")
	if err := gone(); err != nil {
		t.Error(err)
	}
	if strings.Contains(i.stderr.String(), secret) {
		t.Error("the log has the text")
	}
}

// without returns an error that names a file below dir that holds text.
func without(dir, text string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // a file that was replaced meanwhile
		}
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(text)) {
			return fmt.Errorf("%s holds %q", path, text)
		}
		return nil
	})
}
