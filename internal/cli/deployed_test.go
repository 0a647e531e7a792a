package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"

	"github.com/goccy/go-yaml"
)

// deployed is what a file in deploy/ has a container of ours do.
type deployed struct {
	file, name string
	args       []string
	env        map[string]string
}

// settings are the configuration files that containers are given.
var settings = []string{"k8s/base/palimpsest.yaml", "k8s/overlays/prod/palimpsest.yaml"}

// TestDeployedCallsAreUnderstood parses what is deployed as the program does, with
// each of the files that it may be given: every command, flag, key and variable.
// That the overlays run just these calls is held by the tests in deploy/test.
func TestDeployedCallsAreUnderstood(t *testing.T) {
	t.Parallel()
	calls := append(manifested(t), composed(t)...)
	seen := map[string]int{}
	for _, c := range calls {
		for _, file := range settings {
			name, err := understood(c, filepath.Join("..", "..", "deploy", file))
			if err != nil {
				t.Errorf("%s %s with %s: %v", c.file, c.name, file, err)
			}
			seen[name]++
		}
	}
	for _, want := range []string{"ingest", "scheduler", "extractor", "decider", "consolidator", "query", "topology apply"} {
		if seen[want] != 2*len(settings) { // in a cluster, and on one machine
			t.Errorf("%q is called %d times", want, seen[want])
		}
	}
	if seen["ready"] == 0 {
		t.Error("no health check is understood")
	}
}

// What the program does not know must be refused here too.
func TestDeployedMistakesAreFound(t *testing.T) {
	t.Parallel()
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("pipeline:\n  drain: 20s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join("..", "..", "deploy", settings[0])
	ingest := func(args ...string) []string { return append([]string{"ingest", "--config", "c"}, args...) }
	url := map[string]string{"NATS_URL": "nats://n:4222", "REDIS_URL": "redis://r:6379"}
	for name, tc := range map[string]struct {
		call deployed
		file string
	}{
		"a flag":              {deployed{args: ingest("--htp", "0.0.0.0:8080"), env: url}, good},
		"a key":               {deployed{args: ingest(), env: url}, wrong},
		"a variable":          {deployed{args: ingest(), env: map[string]string{"NATS_URL": "nats://n", "PALIMPSEST_HTTP_LISTENS": ""}}, good},
		"a stranger's":        {deployed{args: ingest(), env: map[string]string{"NATS_URL": "nats://n", "REDIS": "x"}}, good},
		"the embedded broker": {deployed{args: ingest(), env: map[string]string{"NATS_URL": "embedded"}}, good},
	} {
		if _, err := understood(tc.call, tc.file); err == nil {
			t.Errorf("%s is let through", name)
		}
	}
}

// understood parses a call and lays its configuration, with file in place of the
// one that it names; it returns the command.
func understood(c deployed, file string) (string, error) {
	args := slices.Clone(c.args)
	if i := slices.Index(args, "--config"); i >= 0 {
		args[i+1] = file
	}
	var flags app.Flags
	all := commands()
	term := terminal.Terminal{Out: io.Discard, Err: io.Discard}
	for name, value := range c.env {
		if !app.Reads(name) {
			return "", errors.New("nothing reads " + name)
		}
		term.Environ = append(term.Environ, name+"="+value)
	}
	parser, err := grammar(&flags, all, term, func(int) {})
	if err != nil {
		return "", err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return "", err
	}
	inv := app.NewInvocation(context.Background(), term, flags)
	name := parsed.Command()
	for _, c := range all {
		if service, ok := c.Run.(*serviceCommand); ok && c.Name == name {
			_, _, err = inv.ServiceConfiguration(name, map[string]string{"http.listen": service.HTTP})
			return name, err
		}
	}
	_, _, err = inv.Configuration(nil)
	return name, err
}

// manifested are the calls in the manifests. What a patch gives to all Deployments
// is given to each here.
func manifested(t *testing.T) (calls []deployed) {
	t.Helper()
	dir := filepath.Join("..", "..", "deploy", "k8s")
	shared := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		for _, doc := range documents(t, path) {
			containers, _ := at(doc, "spec", "template", "spec", "containers").([]any)
			for _, c := range containers {
				if at(c, "name") != "palimpsest" {
					continue
				}
				call := deployed{file: path, args: texts(at(c, "args")), env: map[string]string{}}
				call.name, _ = at(doc, "metadata", "name").(string)
				variables, _ := at(c, "env").([]any)
				for _, v := range variables {
					name, _ := at(v, "name").(string)
					call.env[name], _ = at(v, "value").(string)
					if at(v, "valueFrom") != nil {
						call.env[name] = example[name]
					}
				}
				if call.args == nil {
					for name, value := range call.env {
						shared[name] = value
					}
					continue
				}
				calls = append(calls, call)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		for name, value := range shared {
			if c.args[0] != "topology" {
				c.env[name] = value
			}
		}
	}
	return calls
}

// example stands for what a Secret holds.
var example = map[string]string{
	"NATS_URL": "tls://user:password@nats:4222", "REDIS_URL": "rediss://:password@redis:6379/0",
	"CLICKHOUSE_URL": "clickhouse://user:password@clickhouse:9440/palimpsest?secure=true",
}

// composed are the calls in the Compose file, health checks too.
func composed(t *testing.T) (calls []deployed) {
	t.Helper()
	path := filepath.Join("..", "..", "deploy", "compose.yaml")
	services, _ := at(documents(t, path)[0], "services").(map[string]any)
	for name, service := range services {
		if at(service, "image") != "palimpsest" {
			continue
		}
		c := deployed{file: path, name: name, args: texts(at(service, "command")), env: map[string]string{}}
		variables, _ := at(service, "environment").(map[string]any)
		for variable, value := range variables {
			text, _ := value.(string)
			c.env[variable] = strings.NewReplacer(
				"${NATS_PASSWORD:-palimpsest}", "p", "${REDIS_PASSWORD:-palimpsest}", "p", "${CLICKHOUSE_PASSWORD:-palimpsest}", "p").Replace(text)
		}
		calls = append(calls, c)
		if test := texts(at(service, "healthcheck", "test")); len(test) > 2 {
			calls = append(calls, deployed{file: path, name: name + "'s health", args: test[2:], env: c.env})
		}
	}
	return calls
}

func documents(t *testing.T, path string) (all []any) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for d := yaml.NewDecoder(file); ; {
		var doc any
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, doc)
	}
}

// at is what stands under keys, nil where nothing does.
func at(v any, keys ...string) any {
	for _, key := range keys {
		members, _ := v.(map[string]any)
		v = members[key]
	}
	return v
}

func texts(v any) (all []string) {
	items, _ := v.([]any)
	for _, item := range items {
		text, _ := item.(string)
		all = append(all, text)
	}
	return all
}
