package deploy_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// composed reads deploy/compose.yaml as Compose does: by its schema, which knows
// no other fields, with every reference resolved.
func composed(t *testing.T) *types.Project {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "deploy", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: filepath.Dir(path), ConfigFiles: []types.ConfigFile{{Filename: path}}, Environment: types.Mapping{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeRunsThePipeline(t *testing.T) {
	t.Parallel()
	p := composed(t)
	want := append([]string{"clickhouse", "nats", "redis", "topology"}, services...)
	slices.Sort(want)
	if have := slices.Sorted(maps.Keys(p.Services)); !slices.Equal(have, want) {
		t.Fatalf("services %v, want %v", have, want)
	}
	for _, name := range services {
		s := p.Services[name]
		if s.Image != "palimpsest" || s.Build == nil || s.Command[0] != name {
			t.Errorf("%s runs %v of %s", name, s.Command, s.Image)
		}
		if !s.ReadOnly || s.User != "65532:65532" || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s is not confined: %+v", name, s)
		}
		if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) != 45*time.Second {
			t.Errorf("%s has %v to end", name, s.StopGracePeriod)
		}
		for _, on := range []string{"topology", "redis", "clickhouse"} {
			if s.DependsOn[on].Condition == "" {
				t.Errorf("%s does not wait for %s", name, on)
			}
		}
		if url := s.Environment["NATS_URL"]; url == nil || !strings.HasPrefix(*url, "nats://"+name+":") {
			t.Errorf("%s does not log in as itself", name)
		}
		if _, ok := s.Environment["CLICKHOUSE_URL"]; ok != (name == "consolidator" || name == "query") {
			t.Errorf("%s and the audit log: %v", name, ok)
		}
	}
	if on := p.Services["topology"].DependsOn["nats"]; on.Condition != types.ServiceConditionHealthy {
		t.Errorf("the topology does not wait for NATS: %+v", on)
	}
}

func TestComposeIsHealthyAndOnLoopback(t *testing.T) {
	t.Parallel()
	open := map[string][]string{}
	for name, s := range composed(t).Services {
		if h := s.HealthCheck; name != "topology" && (h == nil || h.Disable || len(h.Test) < 2) {
			t.Errorf("%s has no health check", name)
		}
		for _, p := range s.Ports {
			open[name] = append(open[name], p.Published)
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to others than this machine", name, p.Published)
			}
		}
		if strings.HasSuffix(s.Image, ":latest") {
			t.Errorf("%s is of no version", s.Image)
		}
	}
	if len(open) != 2 || !slices.Equal(open["query"], []string{"8080"}) || !slices.Equal(open["nats"], []string{"4222"}) {
		t.Errorf("open are %v", open)
	}
}

// The server is given a password for each of its users.
func TestComposeKnowsEveryUser(t *testing.T) {
	t.Parallel()
	accounts := string(read(t, "deploy", "nats", "accounts.conf"))
	given := composed(t).Services["nats"].Environment
	for name := range given {
		if !strings.Contains(accounts, "$"+name+" ") && !strings.Contains(accounts, "$"+name+"\n") && !strings.Contains(accounts, "$"+name+",") {
			t.Errorf("%s is nobody's password", name)
		}
	}
	if n := strings.Count(accounts, "password: $"); n != len(given) {
		t.Errorf("%d users, %d passwords", n, len(given))
	}
}

// Mounted files and build contexts are there.
func TestComposeNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	p := composed(t)
	for _, c := range p.Configs {
		if !filepath.IsAbs(c.File) || len(read(t, "deploy", "k8s", "base", filepath.Base(c.File))) == 0 {
			t.Errorf("no configuration %s", c.File)
		}
	}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeVolume && p.Volumes[v.Source].Name == "" {
				t.Errorf("%s: no volume %s", name, v.Source)
			}
		}
		if s.Build != nil && (filepath.Base(s.Build.Dockerfile) != "Dockerfile" || len(read(t, s.Build.Dockerfile)) == 0) {
			t.Errorf("%s is built by %s", name, s.Build.Dockerfile)
		}
	}
}
