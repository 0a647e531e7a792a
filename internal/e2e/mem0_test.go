package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palimpsest/pkg/scope"
)

// mem0Clients: the published clients work unmodified.
func mem0Clients(t *testing.T, i *instance) { mem0ClientsWith(t, i, "none") }

// mem0ClientsWith runs them with an API key.
func mem0ClientsWith(t *testing.T, i *instance, key string) {
	t.Helper()
	installed, err := filepath.Abs(filepath.Join(root, ".cache", "mem0"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		program, script string
		args            []string
	}{
		"node":   {"node", "client.mjs", []string{"--input-type=module", "-"}},
		"python": {filepath.Join(installed, "python", "bin", "python"), "client.py", []string{"-"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs := map[string]string{"node": "node_modules/mem0ai", "python": "python/bin/python"}[name]
			if _, err := os.Stat(filepath.Join(installed, needs)); err != nil {
				t.Skip("mem0's client is not installed: make mem0")
			}
			script, err := os.Open(filepath.Join("testdata", "mem0", c.script))
			if err != nil {
				t.Fatal(err)
			}
			defer script.Close()
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			run := exec.CommandContext(ctx, c.program, append(c.args, i.HTTP, i.person("ada/l 🦊 "+name).User)...)
			run.Dir, run.Stdin = installed, script
			run.Env = append(os.Environ(), "MEM0_TELEMETRY=false", "MEM0_API_KEY="+key, "HOME="+t.TempDir())
			if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "passed") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// mem0CommandLine: the published command line works unmodified. Each of its commands ends
// 5 s after its answer, when a timer of its own does.
func mem0CommandLine(t *testing.T, i *instance) {
	program, err := filepath.Abs(filepath.Join(root, ".cache", "mem0", "node_modules", ".bin", "mem0"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("mem0's command line is not installed: make mem0")
	}
	who, home := i.person("cli"), t.TempDir()
	mem0 := func(args ...string) string {
		t.Helper()
		run := exec.CommandContext(t.Context(), program, append([]string{"--json"}, args...)...)
		run.Env = append(os.Environ(), "MEM0_TELEMETRY=false", "MEM0_API_KEY=none", "MEM0_BASE_URL="+i.HTTP, "HOME="+home)
		out, err := run.Output()
		if err != nil {
			t.Fatalf("mem0 %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	mem0("add", "I live in Oslo", "--user-id", who.User)
	i = i.in(t)
	i.settled(of(scope.Scope{Project: scope.DefaultProject, User: who.User}), 1)
	shown := ""
	for _, args := range [][]string{{"list"}, {"search", "where do I live?"}} {
		// A search shows similar memories only: it waits for the vector.
		eventually(t, "the memory is shown", func() error {
			if shown = mem0(append(args, "--user-id", who.User)...); !strings.Contains(shown, "Oslo") {
				return fmt.Errorf("%q: %s", args, shown)
			}
			return nil
		})
	}
	var listed struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal([]byte(shown), &listed) != nil || len(listed.Data) != 1 {
		t.Fatalf("search: %s", shown)
	}
	id := listed.Data[0].ID
	mem0("update", id, "The user lives in Bergen.")
	if out := mem0("get", id); !strings.Contains(out, "lives in Bergen") {
		t.Errorf("get behind an update: %s", out)
	}
	file := filepath.Join(home, "memories.json")
	write(t, file, []byte(`[{"memory": "I like jazz."}]`))
	mem0("import", file, "--user-id", who.User)
	mem0("delete", id, "--force")
	eventually(t, "the imported memory, and not the deleted one", func() error {
		if out := mem0("list", "--user-id", who.User); !strings.Contains(out, "jazz") || strings.Contains(out, "Bergen") {
			return fmt.Errorf("list: %s", out)
		}
		return nil
	})
	mem0("delete", "--all", "--user-id", who.User, "--force")
	if out := mem0("list", "--user-id", who.User); strings.Contains(out, "jazz") {
		t.Errorf("after delete: %s", out)
	}
}

// ask sends a request of mem0's API and decodes the answer.
func (i *instance) ask(method, path, body string) (status int, answer any) {
	i.t.Helper()
	r, err := http.NewRequestWithContext(i.t.Context(), method, i.HTTP+path, strings.NewReader(body))
	if err != nil {
		i.t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(r) // follows no redirect
	if err != nil {
		i.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(&answer)
	}
	if err != nil {
		i.t.Fatalf("%s %s: %d %v: %s", method, path, res.StatusCode, err, text)
	}
	return res.StatusCode, answer
}

// mem0Compat: an add of the compat family answers with its results, and a change
// shows in the history.
func mem0Compat(t *testing.T, i *instance) {
	i = i.in(t)
	user, err := json.Marshal(i.person("ada").User)
	if err != nil {
		t.Fatal(err)
	}
	add := func(content string) object {
		t.Helper()
		status, answer := i.ask(http.MethodPost, "/compat/v1/memories/", `{"messages":[{"role":"user","content":"`+content+`"}],"user_id":`+string(user)+`}`)
		results, _ := answer.(object)["results"].([]any)
		if status != http.StatusOK || len(results) != 1 {
			t.Fatalf("add %q: %d %v", content, status, answer)
		}
		return results[0].(object)
	}
	first := add("My name is Bob")
	id, _ := first["id"].(string)
	if first["event"] != "ADD" || id == "" {
		t.Errorf("add: %v", first)
	}
	if again := add("My name is Bob"); again["event"] != "NONE" {
		t.Errorf("add again: %v", again)
	}
	for path, want := range map[string]int{"/compat/v1/memories/" + id: http.StatusOK, "/compat/v1/memories/" + id + "/": http.StatusOK, "/compat/v1/memories/nope/": http.StatusNotFound} {
		if status, answer := i.ask(http.MethodGet, path, ""); status != want {
			t.Errorf("GET %s: %d %v", path, status, answer)
		}
	}
	if status, answer := i.ask(http.MethodPut, "/compat/v1/memories/"+id+"/", `{"text":"The user's name is Robert."}`); status != http.StatusOK {
		t.Errorf("update: %d %v", status, answer)
	}
	if status, answer := i.ask(http.MethodDelete, "/compat/v1/memories/"+id+"/", ""); status != http.StatusOK {
		t.Errorf("delete: %d %v", status, answer)
	}
	_, answer := i.ask(http.MethodGet, "/compat/v1/memories/"+id+"/history/", "")
	steps, _ := answer.([]any)
	if len(steps) != 3 {
		t.Fatalf("history: %v", answer)
	}
	for n, event := range []string{"ADD", "UPDATE", "DELETE"} {
		step := steps[n].(object)
		if step["event"] != event || step["is_deleted"] != (event == "DELETE") {
			t.Errorf("step %d: %v", n, step)
		}
	}
	if status, answer := i.ask(http.MethodPost, "/compat/v1/memories/", `{"messages":"x"}`); status != http.StatusBadRequest {
		t.Errorf("no entity: %d %v", status, answer)
	}
}
