package deploy_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// stages parses a Dockerfile; an instruction or a flag that there is not is an
// error.
func stages(t *testing.T, path ...string) []instructions.Stage {
	t.Helper()
	parsed, err := parser.Parse(bytes.NewReader(read(t, path...)))
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Warnings) > 0 {
		t.Errorf("%v: %v", path, parsed.Warnings)
	}
	return all
}

// commands are those of a type in a stage.
func commands[T any](s instructions.Stage) []T {
	var all []T
	for _, c := range s.Commands {
		if typed, ok := c.(T); ok {
			all = append(all, typed)
		}
	}
	return all
}

func TestImagesAreBareAndNotRoot(t *testing.T) {
	t.Parallel()
	for _, path := range [][]string{{"deploy", "Dockerfile"}, {"tilt", "Dockerfile"}} {
		all := stages(t, path...)
		last := all[len(all)-1]
		if last.BaseName != "scratch" {
			t.Errorf("%v: made from %s", path, last.BaseName)
		}
		if users := commands[*instructions.UserCommand](last); len(users) != 1 || users[0].User != "65532:65532" {
			t.Errorf("%v: runs as %+v", path, users)
		}
		entries := commands[*instructions.EntrypointCommand](last)
		if len(entries) != 1 || entries[0].PrependShell || !slices.Equal(entries[0].CmdLine, []string{"/palimpsest"}) {
			t.Errorf("%v: begins with %+v", path, entries)
		}
	}
}

// The binary is static, knows nothing of the machine that built it, and is built
// from modules of known content by the Go that the image brings.
func TestImageIsReproducible(t *testing.T) {
	t.Parallel()
	build := stages(t, "deploy", "Dockerfile")[0]
	env := map[string]string{}
	for _, e := range commands[*instructions.EnvCommand](build) {
		for _, pair := range e.Env {
			env[pair.Key] = pair.Value
		}
	}
	if env["CGO_ENABLED"] != "0" || env["GOTOOLCHAIN"] != "local" || env["GOFLAGS"] != "-mod=readonly" {
		t.Errorf("environment %v", env)
	}
	runs := commands[*instructions.RunCommand](build)
	compile := strings.Join(runs[len(runs)-1].CmdLine, " ")
	for _, flag := range []string{"-trimpath", "-buildid=", "./cmd/palimpsest"} {
		if !strings.Contains(compile, flag) {
			t.Errorf("built by %s, without %s", compile, flag)
		}
	}
	ignored := strings.Fields(string(read(t, "deploy", "Dockerfile.dockerignore")))
	for _, needed := range []string{"!go.mod", "!go.sum", "!cmd", "!internal", "!pkg", "!services"} {
		if !slices.Contains(ignored, needed) {
			t.Errorf("the build does not see %s", needed)
		}
	}
}
