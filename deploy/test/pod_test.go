package deploy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// closeLimit is what the program takes at most to close what has drained, and the
// second that cancelled handlers have before.
const closeLimit = 16 * time.Second

func TestPodsAreConfined(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shape) {
		for _, w := range s.workloads() {
			pod := w.template.Spec
			if c := pod.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.RunAsUser == nil || *c.RunAsUser == 0 ||
				c.SeccompProfile == nil || c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: pod security %+v", w.name, c)
			}
			if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
				t.Errorf("%s has a token for the API of Kubernetes", w.name)
			}
			// Variables such as PALIMPSEST_SERVICE_HOST would be unknown settings.
			if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
				t.Errorf("%s has the variables of every Service", w.name)
			}
			if pod.HostNetwork || pod.HostPID || pod.HostIPC {
				t.Errorf("%s shares its node's namespaces", w.name)
			}
			for _, c := range pod.Containers {
				confined(t, w, c)
			}
		}
	})
}

func confined(t *testing.T, w workload, c corev1.Container) {
	t.Helper()
	sec := c.SecurityContext
	if sec == nil || sec.AllowPrivilegeEscalation == nil || *sec.AllowPrivilegeEscalation || sec.Capabilities == nil ||
		!slices.Equal(sec.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(sec.Capabilities.Add) > 0 {
		t.Fatalf("%s: container security %+v", w.name, sec)
	}
	if readOnly := sec.ReadOnlyRootFilesystem != nil && *sec.ReadOnlyRootFilesystem; !readOnly && w.name != "clickhouse" {
		t.Errorf("%s can write to its root file system", w.name)
	}
	request, limit := c.Resources.Requests, c.Resources.Limits
	if request.Cpu().IsZero() || request.Memory().IsZero() || limit.Memory().Cmp(*request.Memory()) < 0 {
		t.Errorf("%s: requests %v, limits %v", w.name, request, limit)
	}
	if w.kind == "Job" {
		return
	}
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe == nil {
			t.Errorf("%s has no %s probe", w.name, name)
			continue
		}
		port := ""
		switch {
		case probe.HTTPGet != nil:
			port = probe.HTTPGet.Port.String()
		case probe.TCPSocket != nil:
			port = probe.TCPSocket.Port.String()
		}
		if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port }) {
			t.Errorf("%s: the %s probe asks port %q, which the container has not", w.name, name, port)
		}
	}
}

func TestServicesAreProbed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shape) {
		for name, d := range of[appsv1.Deployment](s) {
			c := d.Spec.Template.Spec.Containers[0]
			if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.StartupProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
				t.Errorf("%s: probes ask %s, %s and %s", name, c.LivenessProbe.HTTPGet.Path, c.StartupProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path)
			}
			// A start may wait 30 s for an engine, and only then must answer.
			if patience := time.Duration(c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold) * time.Second; patience < time.Minute {
				t.Errorf("%s has %v to start", name, patience)
			}
			if u := d.Spec.Strategy.RollingUpdate; u == nil || u.MaxUnavailable.IntValue() != 0 {
				t.Errorf("%s: a rollout takes replicas away before there are new ones", name)
			}
			if len(d.Spec.Template.Spec.TopologySpreadConstraints) != 2 {
				t.Errorf("%s is not spread over zones and nodes", name)
			}
		}
	})
}

// A pod has the time that the program takes to drain, and no more.
func TestGraceCoversTheDrain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shape) {
		for name, d := range of[appsv1.Deployment](s) {
			var configured struct {
				Pipeline struct {
					Drain string `json:"drain_timeout"`
				}
			}
			if err := yaml.Unmarshal([]byte(s.settings(t, d.Spec.Template.Spec)), &configured); err != nil {
				t.Fatal(err)
			}
			drain, err := time.ParseDuration(configured.Pipeline.Drain)
			if err != nil {
				t.Fatal(err)
			}
			grace := time.Duration(*d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
			if need := drain + closeLimit; grace < need || grace > 2*need {
				t.Errorf("%s has %v to end, and drains for %v", name, grace, need)
			}
		}
	})
}

// settings is the configuration that a pod mounts where its arguments say.
func (s shape) settings(t *testing.T, pod corev1.PodSpec) string {
	t.Helper()
	c := pod.Containers[0]
	i := slices.Index(c.Args, "--config")
	if i < 0 {
		t.Fatalf("no --config in %v", c.Args)
	}
	for _, m := range c.VolumeMounts {
		key, ok := strings.CutPrefix(c.Args[i+1], m.MountPath+"/")
		if !ok || !m.ReadOnly {
			continue
		}
		for _, v := range pod.Volumes {
			if v.Name != m.Name || v.ConfigMap == nil {
				continue
			}
			found := of[corev1.ConfigMap](s)[v.ConfigMap.Name]
			if found == nil || found.Data[key] == "" {
				t.Fatalf("no key %s in ConfigMap %s", key, v.ConfigMap.Name)
			}
			return found.Data[key]
		}
	}
	t.Fatalf("%s is mounted nowhere", c.Args[i+1])
	return ""
}

// One image and one configuration; each service is called by its name and logs in
// as itself; secret values come from Secrets that exist.
func TestServicesAreCalledAndLogIn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shape) {
		images := map[string]bool{}
		for _, service := range services {
			d := of[appsv1.Deployment](s)["palimpsest-"+service]
			pod := d.Spec.Template.Spec
			c := pod.Containers[0]
			images[c.Image] = true
			if len(pod.Containers) != 1 || len(c.Args) == 0 || c.Args[0] != service || len(c.Command) > 0 {
				t.Errorf("%s runs %v %v", service, c.Command, c.Args)
			}
			if pod.ServiceAccountName != "palimpsest" {
				t.Errorf("%s runs as %q", service, pod.ServiceAccountName)
			}
			want := []string{"palimpsest-nats-" + service + " NATS_URL", "palimpsest-redis REDIS_URL"}
			if service == "consolidator" || service == "query" {
				want = append(want, "palimpsest-clickhouse CLICKHOUSE_URL")
			}
			s.secrets(t, service, c, want)
		}
		job := of[batchv1.Job](s)["palimpsest-topology"].Spec.Template.Spec.Containers[0]
		images[job.Image] = true
		s.secrets(t, "topology", job, []string{"palimpsest-nats-operator NATS_URL"})
		if len(images) != 1 {
			t.Errorf("several images: %v", images)
		}
	})
}

// secrets holds a container to the references (name, key) that it should have.
func (s shape) secrets(t *testing.T, of string, c corev1.Container, want []string) {
	t.Helper()
	var have []string
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			if strings.HasSuffix(e.Name, "_URL") {
				t.Errorf("%s has %s in the clear", of, e.Name)
			}
			continue
		}
		ref := e.ValueFrom.SecretKeyRef
		if ref == nil || ref.Key != e.Name {
			t.Errorf("%s takes %s from %+v", of, e.Name, e.ValueFrom)
			continue
		}
		name := s.origin(ref.Name)
		have = append(have, name+" "+ref.Key)
		if s.name != "base" && !s.makes(ref.Name, ref.Key) {
			t.Errorf("%s: no Secret %s with %s is made", of, ref.Name, ref.Key)
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("%s has the secrets %v, want %v", of, have, want)
	}
}

// origin is a generated Secret's name without the hash of its content.
func (s shape) origin(name string) string {
	if s.name != "dev" {
		return name
	}
	return name[:strings.LastIndex(name, "-")]
}

// makes reports whether something makes a Secret with a key.
func (s shape) makes(name, key string) bool {
	if secret := of[corev1.Secret](s)[name]; secret != nil {
		return len(secret.Data[key]) > 0
	}
	external := of[externalSecret](s)[name]
	return external != nil && external.Spec.Target.Name == name && len(external.Spec.Data) == 1 && external.Spec.Data[0].SecretKey == key
}
