package e2e

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// block is a fenced block of a document. Its field what is the text behind the fence:
// the language, and how a test treats a block of commands.
type block struct{ what, text string }

var fenced = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

func blocksOf(t *testing.T, document string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// TestDocumentedCommands runs the commands of the README and of docs, each document
// on a Palimpsest of its own. "sh" runs while it is up, "sh stopped" while it is
// down, and "sh not run:" names the reason. An answer in JSON or text that follows
// must be part of the output.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range append(documents, filepath.Join(root, "README.md")) {
		t.Run(filepath.Base(document), func(t *testing.T) {
			t.Parallel()
			d := &documented{t: t}
			for _, b := range blocksOf(t, document) {
				d.take(b)
			}
		})
	}
}

// documented runs the blocks of one document.
type documented struct {
	t    *testing.T
	dir  string
	up   *process // nil before the first command
	fact string   // the id that stands for ID
	said int      // episodes
	out  string   // of the last block; empty if it was not run
}

func (d *documented) take(b block) {
	d.t.Helper()
	language, how, _ := strings.Cut(b.what, " ")
	switch {
	case language == "json" && d.out != "":
		d.wantJSON(b.text)
	case language == "text" && d.out != "":
		d.wantText(b.text)
	case language != "sh":
		return
	case strings.HasPrefix(how, "not run: "):
		d.out = ""
	case how == "stopped":
		d.begin()
		d.up.kill()
		d.run(b.text)
		d.up.begin()
	case how == "":
		d.begin()
		d.run(b.text)
	default:
		d.t.Errorf("a block is marked %q", how)
	}
}

// begin starts a Palimpsest that knows a fact, and links the program as the
// documents name it.
func (d *documented) begin() {
	d.t.Helper()
	if d.up != nil {
		return
	}
	d.dir = d.t.TempDir()
	d.up = start(d.t, filepath.Join(d.dir, "palimpsest-data"))
	if err := os.Mkdir(filepath.Join(d.dir, "bin"), 0o700); err != nil {
		d.t.Fatal(err)
	}
	file, err := filepath.Abs(program)
	if err == nil {
		err = os.Symlink(file, filepath.Join(d.dir, "bin", "palimpsest"))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.run(`curl -sf 127.0.0.1:8080/v1/episodes -H 'Content-Type: application/json' \
  -d '{"user":"nora","agent":"assistant","session":"s0","messages":"I like skiing.","wait":true}'`)
	var said struct {
		Results []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(d.out), &said); err != nil || len(said.Results) == 0 {
		d.t.Fatalf("%v: %s", err, d.out)
	}
	d.fact = said.Results[0].ID
}

var placeholder = regexp.MustCompile(`\bID\b`)

func (d *documented) run(script string) {
	d.t.Helper()
	listen := func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			d.t.Fatal(err)
		}
		return u.Host
	}
	http := listen(d.up.HTTP)
	script = placeholder.ReplaceAllString(strings.ReplaceAll(script, "127.0.0.1:8080", http), d.fact)
	cmd := exec.CommandContext(d.t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(d.dir, "bin")+":"+os.Getenv("PATH"),
		"PALIMPSEST_HTTP_LISTEN="+http, "PALIMPSEST_NATS_LISTEN="+listen(d.up.NATS))
	tie(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Errorf("%v: %s\n%s", err, script, out)
	}
	d.out = string(out)
	for _, m := range published.FindAllStringSubmatch(d.out, -1) {
		if m[0] == episodesMember {
			d.said++
		}
		for _, count := range m[1:] {
			if n, err := strconv.Atoi(count); err == nil {
				d.said += n
			}
		}
	}
	if d.up.cmd != nil {
		d.up.settled(everything("default"), d.said)
	}
}

// published matches what a command prints of episodes that it published or imported:
// their number, or the answer to one.
var published = regexp.MustCompile(`(?m)^(\d+) published$|^(\d+) messages and (\d+) memories imported$|` + regexp.QuoteMeta(episodesMember))

const episodesMember = `"episodes":[`

func (d *documented) wantJSON(text string) {
	d.t.Helper()
	var got, want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		d.t.Fatalf("%v: %s", err, text)
	}
	if err := json.Unmarshal([]byte(d.out), &got); err != nil || !has(got, want) {
		d.t.Errorf("the answer is %s (%v), documented is %s", d.out, err, text)
	}
}

// has reports whether got has all that want has.
func has(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		for key, value := range want {
			ok = ok && has(got[key], value)
		}
		return ok
	case []any:
		got, ok := got.([]any)
		ok = ok && len(got) >= len(want)
		for i := 0; ok && i < len(want); i++ {
			ok = has(got[i], want[i])
		}
		return ok
	}
	return got == want
}

// column matches a cell of a table that has words and no digits.
var column = regexp.MustCompile(`(?:[^\s\d]+ )+[^\s\d]+`)

func (d *documented) wantText(text string) {
	d.t.Helper()
	for _, cell := range column.FindAllString(text, -1) {
		if !strings.Contains(d.out, cell) {
			d.t.Errorf("%q is not in %s", cell, d.out)
		}
	}
}
