package deploy_test

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// selected are the names of the workloads whose pods a selector takes.
func (s shape) selected(t *testing.T, by *metav1.LabelSelector) []string {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range s.workloads() {
		if selector.Matches(labels.Set(w.template.Labels)) {
			names = append(names, w.name)
		}
	}
	slices.Sort(names)
	return names
}

func (s shape) find(name string) *workload {
	for _, w := range s.workloads() {
		if w.name == name {
			return &w
		}
	}
	return nil
}

// ours are the names of the six Deployments, and more.
func ours(more ...string) []string {
	for _, s := range services {
		more = append(more, "palimpsest-"+s)
	}
	slices.Sort(more)
	return more
}

func TestWorkloadsSelectTheirOwnPods(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shape) {
		for _, w := range s.workloads() {
			if w.selector == nil {
				continue
			}
			if names := s.selected(t, w.selector); !slices.Equal(names, []string{w.name}) {
				t.Errorf("%s selects the pods of %v", w.name, names)
			}
		}
		for name, d := range of[appsv1.Deployment](s) {
			for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
				for _, key := range append(slices.Collect(maps.Keys(c.LabelSelector.MatchLabels)), c.MatchLabelKeys...) {
					// The last one is set by the Deployment's controller.
					if d.Spec.Template.Labels[key] == "" && key != "pod-template-hash" {
						t.Errorf("%s is spread by %s, which its pods have not", name, key)
					}
				}
			}
		}
	})
}

func TestServicesReachPorts(t *testing.T) {
	t.Parallel()
	want := map[string]map[string]string{
		"base": {"palimpsest": "palimpsest-query"},
		"dev":  {"palimpsest": "palimpsest-query", "nats": "nats", "redis": "redis", "clickhouse": "clickhouse"},
		"prod": {"palimpsest": "palimpsest-query"},
	}
	each(t, func(t *testing.T, s shape) {
		have := map[string]string{}
		for name, service := range of[corev1.Service](s) {
			names := s.selected(t, &metav1.LabelSelector{MatchLabels: service.Spec.Selector})
			if len(names) != 1 {
				t.Errorf("Service %s selects %v", name, names)
				continue
			}
			have[name] = names[0]
			for _, p := range service.Spec.Ports {
				if !listens(s.find(names[0]), p.TargetPort) {
					t.Errorf("Service %s: port %d leads to %s, on which %s does not listen", name, p.Port, p.TargetPort.String(), names[0])
				}
			}
		}
		if !maps.Equal(have, want[s.name]) {
			t.Errorf("Services lead to %v, want %v", have, want[s.name])
		}
	})
}

// listens reports whether a container of a workload has the port.
func listens(w *workload, port intstr.IntOrString) bool {
	for _, c := range w.template.Spec.Containers {
		for _, p := range c.Ports {
			if port.Type == intstr.String && p.Name == port.StrVal || port.Type == intstr.Int && p.ContainerPort == port.IntVal {
				return true
			}
		}
	}
	return false
}

func prod(t *testing.T) shape {
	t.Helper()
	all, err := shapes()
	if err != nil {
		t.Fatal(err)
	}
	return all[slices.IndexFunc(all, func(s shape) bool { return s.name == "prod" })]
}

// Every service keeps replicas through a drained node, and has more than one.
func TestProdSurvivesDisruption(t *testing.T) {
	t.Parallel()
	s := prod(t)
	kept := map[string]bool{}
	for name, b := range of[policyv1.PodDisruptionBudget](s) {
		names := s.selected(t, b.Spec.Selector)
		if len(names) != 1 || b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() != 1 {
			t.Errorf("%s: %+v of %v", name, b.Spec.MaxUnavailable, names)
			continue
		}
		kept[names[0]] = true
	}
	least := map[string]int{}
	for _, o := range of[scaledObject](s) {
		spec := o.Spec
		least[spec.ScaleTargetRef.Name] = spec.MinReplicaCount
		if spec.MaxReplicaCount < spec.MinReplicaCount || len(spec.Triggers) == 0 || spec.Fallback.Replicas < spec.MinReplicaCount {
			t.Errorf("%s: %+v", o.Name, spec)
		}
	}
	if n := of[scaledObject](s)["palimpsest-ingest"].Spec.MaxReplicaCount; n != 16 {
		t.Errorf("ingest has up to %d replicas for 16 partitions", n)
	}
	for _, h := range of[autoscalingv2.HorizontalPodAutoscaler](s) {
		least[h.Spec.ScaleTargetRef.Name] = int(*h.Spec.MinReplicas)
	}
	for name, d := range of[appsv1.Deployment](s) {
		scaled := least[name] > 0
		switch {
		case scaled && d.Spec.Replicas != nil:
			t.Errorf("%s: each apply would undo its autoscaler", name)
		case !scaled && d.Spec.Replicas != nil:
			least[name] = int(*d.Spec.Replicas)
		}
		if least[name] < 2 || !kept[name] {
			t.Errorf("%s has %d replicas, budget %v", name, least[name], kept[name])
		}
	}
	for name := range least {
		if of[appsv1.Deployment](s)[name] == nil {
			t.Errorf("%s is scaled and does not exist", name)
		}
	}
}

// A pod accepts and opens only the connections in this list.
func TestProdNetworkIsClosed(t *testing.T) {
	t.Parallel()
	s := prod(t)
	all := ours("palimpsest-topology")
	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	policies := of[networkingv1.NetworkPolicy](s)
	closed := policies["palimpsest-default"].Spec
	if !slices.Equal(closed.PolicyTypes, both) || len(closed.Ingress)+len(closed.Egress) > 0 || !slices.Equal(s.selected(t, &closed.PodSelector), all) {
		t.Errorf("what is not allowed is not refused: %+v", closed)
	}
	for _, tc := range []struct {
		policy   string
		of       []string
		in, outs []string
	}{
		{"palimpsest-engines", all, nil, []string{"53", "53", "4222", "6379"}},
		{"palimpsest-audit", []string{"palimpsest-consolidator", "palimpsest-query"}, nil, []string{"9440"}},
		{"palimpsest-metrics", all, []string{"http"}, nil},
		{"palimpsest-api", []string{"palimpsest-query"}, []string{"http"}, nil},
	} {
		spec := policies[tc.policy].Spec
		if names := s.selected(t, &spec.PodSelector); !slices.Equal(names, tc.of) {
			t.Errorf("%s is about %v", tc.policy, names)
		}
		var in, outs []string
		for _, rule := range spec.Ingress {
			if len(rule.From) == 0 || slices.ContainsFunc(rule.From, everybody) {
				t.Errorf("%s lets everybody in", tc.policy)
			}
			in = append(in, ports(rule.Ports)...)
		}
		for _, rule := range spec.Egress {
			outs = append(outs, ports(rule.Ports)...)
		}
		if !slices.Equal(in, tc.in) || !slices.Equal(outs, tc.outs) {
			t.Errorf("%s opens %v and %v", tc.policy, in, outs)
		}
		for _, port := range in {
			for _, name := range tc.of {
				if name != "palimpsest-topology" && !listens(s.find(name), intstr.FromString(port)) {
					t.Errorf("%s: %s does not listen on %s", tc.policy, name, port)
				}
			}
		}
	}
	if len(policies) != 5 {
		t.Errorf("%d policies", len(policies))
	}
}

// everybody reports whether a peer matches every pod and address.
func everybody(p networkingv1.NetworkPolicyPeer) bool {
	named := func(s *metav1.LabelSelector) bool { return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 }
	return p.IPBlock == nil && !named(p.PodSelector) && !named(p.NamespaceSelector)
}

func ports(all []networkingv1.NetworkPolicyPort) []string {
	var out []string
	for _, p := range all {
		out = append(out, p.Port.String())
	}
	return out
}

// Prometheus finds each service, on a port that it has.
func TestProdIsMonitored(t *testing.T) {
	t.Parallel()
	s := prod(t)
	m := of[podMonitor](s)["palimpsest"]
	if names := s.selected(t, &m.Spec.Selector); !slices.Equal(names, ours()) {
		t.Errorf("monitored are %v", names)
	}
	for _, e := range m.Spec.PodMetricsEndpoints {
		for _, name := range ours() {
			if e.Path != "/metrics" || !listens(s.find(name), intstr.FromString(e.Port)) {
				t.Errorf("%s does not answer %s on %s", name, e.Path, e.Port)
			}
		}
	}
}

// port reads a number.
func port(t *testing.T, text string) intstr.IntOrString {
	t.Helper()
	p := intstr.Parse(text)
	if p.Type != intstr.Int {
		t.Fatalf("%q is no port", text)
	}
	return p
}
