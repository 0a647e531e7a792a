package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/config"
)

type target struct {
	Data string
	HTTP struct {
		Listen  string
		MaxBody int64
	}
	Query struct {
		MaxWait time.Duration
		K       float64
		On      bool
		Names   []string
	}
	Key    string `secret:"true"`
	Hidden string `yaml:"-"`
}

func settings() (*target, *config.Settings) {
	t := &target{Data: "here"}
	t.HTTP.Listen = "127.0.0.1:8080"
	return t, config.Of(t)
}

func TestLayersRiseInPrecedence(t *testing.T) {
	t.Parallel()
	got, s := settings()
	path := filepath.Join(t.TempDir(), "p.yaml")
	text := "data: from file\nhttp:\n  listen: 127.0.0.1:1\n  max_body: 5\nquery:\n  names: [a, b]\n  max_wait: 2m\n  on: true\nkey: hunter2\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.File(path); err != nil {
		t.Fatal(err)
	}
	if err := s.Env([]string{"HOME=/", "PALIMPSEST_HTTP_LISTEN=127.0.0.1:2", "PALIMPSEST_QUERY_K=0.5"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Set("http.listen", "127.0.0.1:3", "flag"); err != nil {
		t.Fatal(err)
	}
	want := &target{Data: "from file", Key: "hunter2"}
	want.HTTP.Listen, want.HTTP.MaxBody = "127.0.0.1:3", 5
	want.Query.MaxWait, want.Query.K, want.Query.On, want.Query.Names = 2*time.Minute, 0.5, true, []string{"a", "b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	origins := map[string]string{}
	for _, e := range s.All() {
		origins[e.Key] = e.Value + " " + string(e.Origin)
	}
	wantOrigins := map[string]string{
		"data": "from file " + path + ":1", "http.listen": "127.0.0.1:3 flag", "http.max_body": "5 " + path + ":4",
		"query.max_wait": "2m0s " + path + ":7", "query.k": "0.5 env PALIMPSEST_QUERY_K", "query.on": "true " + path + ":8",
		"query.names": "a,b " + path + ":6", "key": "******** " + path + ":9",
	}
	if diff := cmp.Diff(wantOrigins, origins); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedWithPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":  {"data: x\nhttp:\n  port: 1\n", `f:3: unknown key "http.port"`},
		"bad duration": {"query:\n  max_wait: soon\n", `f:2: query.max_wait: "soon" is not a duration`},
		"bad number":   {"http:\n  max_body: many\n", `f:2: http.max_body: "many" is not a whole number`},
		"no keys":      {"just text\n", "f:1"},
		"not yaml":     {"a: [", "f:"},
		"hidden":       {"hidden: x\n", "unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := settings()
			err := s.YAML("f", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestUnknownVariableIsRefused(t *testing.T) {
	t.Parallel()
	_, s := settings()
	if err := s.Env([]string{"PALIMPSEST_HTTP_LISTN=x"}); !errors.Is(err, config.ErrUnknownKey) {
		t.Errorf("got %v", err)
	}
}

func TestFallbacksAreSaid(t *testing.T) {
	t.Parallel()
	got, s := settings()
	names := map[string]string{"THEIR_URL": "data", "THEIR_LISTEN": "http.listen"}
	if err := s.Fallbacks([]string{"THEIR_URL=x", "THEIR_LISTEN=", "OTHER=y"}, names); err != nil {
		t.Fatal(err)
	}
	if got.Data != "x" || got.HTTP.Listen != "127.0.0.1:8080" || s.All()[0].Origin != "env THEIR_URL" {
		t.Errorf("%+v, %+v", got, s.All()[0])
	}
}

func TestEmptyFileChangesNothing(t *testing.T) {
	t.Parallel()
	got, s := settings()
	if err := s.YAML("f", []byte("# nothing\n")); err != nil {
		t.Fatal(err)
	}
	if got.Data != "here" {
		t.Errorf("data = %q", got.Data)
	}
}

func TestMaskURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"clickhouse://u:hunter2@h:9000/d?secure=true": "clickhouse://u:xxxxx@h:9000/d?secure=true",
		"redis://:hunter2@h":                          "redis://:xxxxx@h",
		"nats://127.0.0.1:4222":                       "nats://127.0.0.1:4222",
		"nats://u:p1@a:4222,nats://hunter2@b":         "nats://u:xxxxx@a:4222,nats://xxxxx@b",
		"http://h:8123/d?password=hunter2&a=b":        "http://h:8123/d?a=b&password=xxxxx",
		"redis://:hunter2@h:port":                     "redis://xxxxx",
		"./data, or: a:b@c":                           "./data, or: a:b@c",
		"u:hunter2@a:4222,b:4222":                     "xxxxx@a:4222,b:4222",
		"hunter2@a:4222":                              "xxxxx@a:4222",
		"redis//u:hunter2@h":                          "xxxxx@h",
		"model@2":                                     "model@2",
		"":                                            "",
	} {
		if got := config.MaskURL(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte("data: x\nhttp: {listen: y}\n"))
	f.Add([]byte("- a\n- b: [c, {d: e}]\n"))
	f.Add([]byte("query:\n  names:\n"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, s := settings()
		_ = s.YAML("f", text) // must not panic
	})
}
