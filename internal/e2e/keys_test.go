package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// command runs the program with environment besides the tests' own.
func (i *process) command(env []string, args ...string) (stdout, stderr string, err error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(i.t.Context(), program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &out, &complaint
	err = cmd.Run()
	return out.String(), complaint.String(), err
}

// makesKey has the command line make a key.
func (i *process) makesKey(args ...string) (id, token string) {
	i.t.Helper()
	out, complaint, err := i.command(nil, append([]string{"--json", "keys", "create", "--data", i.data}, args...)...)
	var made struct {
		Key   struct{ ID string }
		Token string
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &made)
	}
	if err != nil {
		i.t.Fatalf("keys create: %v %s", err, complaint)
	}
	return made.Key.ID, made.Token
}

// answersKey is the status of a read with a key.
func (i *process) answersKey(token string) int {
	i.t.Helper()
	req, err := http.NewRequestWithContext(i.t.Context(), http.MethodGet, i.HTTP+"/v1/facts?user=nora", nil)
	if err != nil {
		i.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}

// becomes waits until a key is answered with a status, and returns how long it took.
func (i *process) becomes(token string, status int) time.Duration {
	i.t.Helper()
	began := time.Now()
	eventually(i.t, fmt.Sprintf("status %d", status), func() error {
		if got := i.answersKey(token); got != status {
			return fmt.Errorf("status %d", got)
		}
		return nil
	})
	return time.Since(began)
}

// TestP6Keys: the program lets in callers with a key alone, each into its project,
// also after it was killed; the published clients of mem0 among them.
func TestP6Keys(t *testing.T) { //nolint:tparallel // the subtests end before the key does
	t.Parallel()
	i := prepare(t, t.TempDir())
	i.env = []string{"PALIMPSEST_HTTP_AUTH=required"}
	i.begin()
	if status := i.answersKey(""); status != http.StatusUnauthorized {
		t.Errorf("a stranger is answered with %d", status)
	}
	id, acme := i.makesKey("--project", "acme", "--role", "writer", "--name", "bot")
	_, other := i.makesKey("--project", "other", "--role", "admin")
	_, operator := i.makesKey("--all-projects", "--role", "operator")
	i.becomes(acme, http.StatusOK)
	i.becomes(operator, http.StatusOK)

	memory, err := client.New(i.HTTP, client.APIKey(acme))
	if err != nil {
		t.Fatal(err)
	}
	said := api.Record{Scope: api.Scope{User: "nora"}, Messages: []api.Message{{Content: "I live in Oslo."}}, Wait: true}
	if _, err := memory.Record(t.Context(), said, ""); err != nil {
		t.Fatal(err)
	}
	nora := "nora"
	for name, c := range map[string]struct {
		token, project string
		want           int
	}{
		"own":          {acme, "", 1},
		"other":        {other, "", 0},
		"operator's":   {operator, "acme", 1},
		"elsewhere":    {operator, "default", 0},
		"another name": {other, "acme", -1},
	} {
		reader, err := client.New(i.HTTP, client.APIKey(c.token), client.Project(c.project))
		if err != nil {
			t.Fatal(err)
		}
		page, err := reader.Facts(t.Context(), scope.Selector{User: &nora}, client.ListFacts{})
		var p *api.Problem
		if c.want < 0 && (!errors.As(err, &p) || p.Code != api.CodeForbidden) || c.want >= 0 && (err != nil || len(page.Facts) != c.want) {
			t.Errorf("%s: %d facts, %v", name, len(page.Facts), err)
		}
	}
	if out, complaint, err := i.command([]string{"PALIMPSEST_API_KEY=" + acme}, "--server", i.HTTP, "facts", "--user", "nora"); err != nil || !strings.Contains(out, "Oslo") {
		t.Errorf("the command line: %v %s %s", err, out, complaint)
	}
	t.Run("mem0", func(t *testing.T) { mem0ClientsWith(t, i.in(t), acme) }) // it waits for the clients

	i.kill()
	i.begin()
	i.becomes(acme, http.StatusOK)
	if _, complaint, err := i.command(nil, "keys", "revoke", "--data", i.data, id); err != nil {
		t.Fatalf("revoke: %v %s", err, complaint)
	}
	if took := i.becomes(acme, http.StatusUnauthorized); took > time.Second {
		t.Errorf("the revoked key worked for %v more", took)
	}
	out, _, err := i.command(nil, "keys", "list", "--data", i.data, "--revoked")
	if err != nil || !strings.Contains(out, "revoked") || !slices.Contains(strings.Fields(out), id) {
		t.Errorf("list: %v %s", err, out)
	}
	for name, text := range map[string]string{"output": out, "log": i.stderr.String()} {
		if strings.Contains(text, acme[20:]) {
			t.Errorf("the %s shows the secret", name)
		}
	}
}

// TestP6KeysLost: a start over a data directory whose bucket of keys is gone refuses
// all callers, reports it, and goes on with the next key.
func TestP6KeysLost(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	if status := i.answersKey(""); status != http.StatusOK {
		t.Fatalf("before there is a key: %d", status)
	}
	_, first := i.makesKey("--project", "default", "--role", "reader")
	i.becomes("", http.StatusUnauthorized)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	lost, err := filepath.Glob(filepath.Join(i.data, "nats", "jetstream", "*", "streams", "KV_KEYS"))
	if err != nil || len(lost) != 1 {
		t.Fatalf("the stream of keys: %v, %v", lost, err)
	}
	if err := os.RemoveAll(lost[0]); err != nil {
		t.Fatal(err)
	}
	i.begin()
	for _, token := range []string{"", first} {
		if status := i.answersKey(token); status != http.StatusUnauthorized {
			t.Errorf("after the loss, %q is answered with %d", token, status)
		}
	}
	if said := i.stderr.String(); !strings.Contains(said, "KV_KEYS") || !strings.Contains(said, "palimpsest keys create") {
		t.Errorf("the log does not name the loss: %s", said)
	}
	_, next := i.makesKey("--project", "default", "--role", "reader")
	i.becomes(next, http.StatusOK)
	if status := i.answersKey(""); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", status)
	}
}
