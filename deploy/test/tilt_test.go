package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
	appsv1 "k8s.io/api/apps/v1"
)

// call is what the Tiltfile asked Tilt for.
type call struct {
	name   string
	args   starlark.Tuple
	kwargs map[string]starlark.Value
}

// evaluated runs the Tiltfile with builtins that take down what they are called
// with. A builtin or a parameter that is not listed here is an error; these are
// as Tilt's API reference has them.
func evaluated(t *testing.T) []call {
	t.Helper()
	var calls []call
	parameters := map[string][]string{
		"allow_k8s_contexts": {"contexts"},
		"local_resource":     {"name", "cmd", "deps", "dir", "ignore", "labels", "resource_deps", "serve_cmd", "env", "allow_parallel"},
		"docker_build":       {"ref", "context", "dockerfile", "only", "ignore", "build_args", "live_update", "platform"},
		"k8s_yaml":           {"yaml", "allow_duplicates"},
		"kustomize":          {"pathToDir", "kustomize_bin", "flags"},
		"k8s_resource":       {"workload", "new_name", "port_forwards", "resource_deps", "labels", "objects", "links", "pod_readiness"},
	}
	known := starlark.StringDict{}
	for name, may := range parameters {
		known[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			c := call{b.Name(), args, map[string]starlark.Value{}}
			for _, pair := range kwargs {
				key := string(pair[0].(starlark.String)) //nolint:forcetypeassert // keywords are strings
				if !slices.Contains(may, key) {
					return nil, fmt.Errorf("%s has no parameter %s", b.Name(), key)
				}
				c.kwargs[key] = pair[1]
			}
			calls = append(calls, c)
			if b.Name() == "kustomize" {
				return starlark.String("rendered"), nil
			}
			return starlark.None, nil
		})
	}
	options := &syntax.FileOptions{TopLevelControl: true, GlobalReassign: true}
	if _, err := starlark.ExecFileOptions(options, &starlark.Thread{Name: "Tiltfile"}, "Tiltfile", read(t, "tilt", "Tiltfile"), known); err != nil {
		t.Fatal(err)
	}
	return calls
}

func called(all []call, name string) []call {
	return slices.DeleteFunc(slices.Clone(all), func(c call) bool { return c.name != name })
}

// text is a string argument; list one of strings.
func text(v starlark.Value) string {
	s, _ := starlark.AsString(v)
	return s
}

func list(v starlark.Value) []string {
	var all []string
	if items, ok := v.(starlark.Iterable); ok {
		for item := range starlark.Elements(items) {
			all = append(all, text(item))
		}
	}
	return all
}

func TestTiltfileNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	all := evaluated(t)
	there := func(path string) {
		if _, err := os.Stat(filepath.Join(root, "tilt", path)); err != nil {
			t.Error(err)
		}
	}
	compile := called(all, "local_resource")[0]
	for _, path := range list(compile.kwargs["deps"]) {
		there(path)
	}
	command := text(compile.kwargs["cmd"])
	if text(compile.kwargs["dir"]) != ".." || !strings.Contains(command, "CGO_ENABLED=0 GOOS=linux") || !strings.HasSuffix(command, "./cmd/palimpsest") {
		t.Errorf("compiled by %s", command)
	}
	there("../cmd/palimpsest")
	image := called(all, "docker_build")[0]
	there(text(image.kwargs["dockerfile"]))
	// The image gets the file that was compiled.
	context, copied := text(image.args[1]), stages(t, "tilt", "Dockerfile")[0].Commands[0]
	if into := strings.TrimPrefix(context, "../"); !strings.Contains(command, "-o "+into+"/palimpsest ") || !strings.Contains(fmt.Sprint(copied), "palimpsest") {
		t.Errorf("the image is made of %s, and %s is compiled", context, command)
	}
	overlay := text(called(all, "kustomize")[0].args[0])
	there(overlay + "/kustomization.yaml")
	if !strings.HasSuffix(overlay, "/dev") || len(called(all, "k8s_yaml")) != 1 {
		t.Errorf("applies %s", overlay)
	}
}

func TestTiltfileKnowsTheCluster(t *testing.T) {
	t.Parallel()
	all := evaluated(t)
	built, err := shapes()
	if err != nil {
		t.Fatal(err)
	}
	dev := built[slices.IndexFunc(built, func(s shape) bool { return s.name == "dev" })]
	ref := text(called(all, "docker_build")[0].args[0])
	for _, service := range services {
		if image := of[appsv1.Deployment](dev)["palimpsest-"+service].Spec.Template.Spec.Containers[0].Image; image != ref {
			t.Errorf("%s runs %s, and %s is built", service, image, ref)
		}
	}
	names, taken := []string{"compile"}, map[string]bool{}
	for _, w := range dev.workloads() {
		names = append(names, w.name)
	}
	var arranged []string
	for _, c := range called(all, "k8s_resource") {
		name := text(c.args[0])
		arranged = append(arranged, name)
		for _, on := range list(c.kwargs["resource_deps"]) {
			if !slices.Contains(names, on) {
				t.Errorf("%s waits for %s, which is nowhere", name, on)
			}
		}
		for _, forward := range list(c.kwargs["port_forwards"]) {
			local, remote, _ := strings.Cut(forward, ":")
			if taken[local] {
				t.Errorf("%s takes port %s, which another has", name, local)
			}
			taken[local] = true
			if w := dev.find(name); w == nil || !listens(w, port(t, remote)) {
				t.Errorf("%s does not listen on %s", name, remote)
			}
		}
	}
	arranged = append(arranged, "compile")
	slices.Sort(arranged)
	slices.Sort(names)
	if !slices.Equal(arranged, names) {
		t.Errorf("arranged are %v of %v", arranged, names)
	}
}
