package transcript_test

import (
	"archive/zip"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/transcript"
)

var update = flag.Bool("update", false, "write the golden files anew")

// lines are messages as a text, one a line.
func lines(t *testing.T, r *transcript.Reader) string {
	t.Helper()
	var b strings.Builder
	for m, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		at := "-"
		if !m.Time.IsZero() {
			at = m.Time.UTC().Format(time.RFC3339Nano)
		}
		kind := m.Role
		if m.Memory {
			kind = "memory"
		}
		fmt.Fprintf(&b, "%s %s/%s/%s %s %s %q %v\n", m.ID, m.User, m.Agent, m.Session, at, kind, m.Content, m.Metadata)
	}
	return b.String()
}

// TestExports reads an export of each kind. A second reading gives the same ids.
func TestExports(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.json*"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			read := func() string {
				r, err := transcript.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				out := lines(t, r)
				if r.Read() == 0 || r.Read() > r.Size() {
					t.Errorf("read %d of %d bytes", r.Read(), r.Size())
				}
				return out
			}
			got := read()
			golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := read(); again != got {
				t.Errorf("a second reading differs: %s", cmp.Diff(got, again))
			}
		})
	}
}

// TestArchive reads conversations.json out of an archive.
func TestArchive(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "export.zip")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(out)
	entry, err := archive.Create("data/conversations.json")
	if err == nil {
		_, err = entry.Write([]byte(`[{"uuid":"c","chat_messages":[{"uuid":"m","sender":"human","text":"I live in Oslo."}]}]`))
	}
	if err = errors.Join(err, archive.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := transcript.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := lines(t, r); got != "m //c - user \"I live in Oslo.\" map[]\n" {
		t.Error(got)
	}
}

// TestBadExports: an error names the value, and the messages before it were read.
func TestBadExports(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"content":"one"}` + "\n" + `{"contents":"two"}`:                          "value 2",
		`[{"content":"one"},{"content":`:                                           "value 2",
		`[{"content":"one"}`:                                                       "does not end",
		`{"content":"one"} x`:                                                      "value 2",
		`{"content":"one"}` + `{"results":[{"memory":"a"},{"text":"b"}]}`:          "element 2",
		`{"content":"one"}` + `{"content":"two","timestamp":"tomorrow"}`:           `"tomorrow" is no time`,
		`{"content":"one"}` + `{"messages":[{"content":"a"},{"timestamp":"now"}]}`: "messages[1]",
	} {
		count := 0
		var failed error
		for _, err := range transcript.New(strings.NewReader(in)).All() {
			if failed = err; err == nil {
				count++
			}
		}
		if count != 1 || failed == nil || !strings.Contains(failed.Error(), want) {
			t.Errorf("%s: %d messages, %v", in, count, failed)
		}
	}
	if _, err := transcript.Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file is no error")
	}
}

// FuzzRead: no input panics, and every message has an id and a content.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("testdata", "*.json*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for m, err := range transcript.New(strings.NewReader(string(in))).All() {
			if err == nil && (m.ID == "" || strings.TrimSpace(m.Content) == "" || m.Role == "") {
				t.Errorf("%+v", m)
			}
		}
	})
}
