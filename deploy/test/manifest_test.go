package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// services are the six, in the order in which data meets them.
var services = []string{"ingest", "scheduler", "extractor", "decider", "consolidator", "query"}

// shape is one of the ways to deploy, as kustomize builds it.
type shape struct {
	name, dir string
	objects   []object
}

type object struct {
	kind, name, namespace string
	// typed is a Kubernetes object, or one of extensions.
	typed any
}

// shapes builds the base and each overlay, once.
var shapes = sync.OnceValues(func() ([]shape, error) {
	var all []shape
	for _, s := range []shape{
		{name: "base", dir: "base"}, {name: "dev", dir: "overlays/dev"}, {name: "prod", dir: "overlays/prod"},
	} {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "deploy", "k8s", s.dir))
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", s.name, err)
		}
		for _, r := range built.Resources() {
			o, err := decode(r)
			if err != nil {
				return nil, fmt.Errorf("%s: %s %s: %w", s.name, r.GetKind(), r.GetName(), err)
			}
			s.objects = append(s.objects, o)
		}
		all = append(all, s)
	}
	return all, nil
})

func each(t *testing.T, check func(t *testing.T, s shape)) {
	t.Helper()
	all, err := shapes()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			check(t, s)
		})
	}
}

var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme, autoscalingv2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}()

// decode reads an object into its type. A field that the type lacks is an error.
func decode(r *resource.Resource) (object, error) {
	o := object{kind: r.GetKind(), name: r.GetName(), namespace: r.GetNamespace()}
	text, err := r.AsYAML()
	if err != nil {
		return o, err
	}
	if make, ok := extensions[r.GetApiVersion()+" "+o.kind]; ok {
		body, err := r.MarshalJSON()
		if err != nil {
			return o, err
		}
		o.typed = make()
		strict := json.NewDecoder(bytes.NewReader(body))
		strict.DisallowUnknownFields()
		return o, strict.Decode(o.typed)
	}
	o.typed, _, err = codecs.UniversalDeserializer().Decode(text, nil, nil)
	return o, err
}

// of are the objects of a type.
func of[T any](s shape) map[string]*T {
	all := map[string]*T{}
	for _, o := range s.objects {
		if typed, ok := o.typed.(*T); ok {
			all[o.name] = typed
		}
	}
	return all
}

func TestEverythingDecodes(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"base": {"ConfigMap", "Deployment", "Job", "Service", "ServiceAccount"},
		"dev":  {"ConfigMap", "Deployment", "Job", "Namespace", "Secret", "Service", "ServiceAccount", "StatefulSet"},
		"prod": {
			"ConfigMap", "Deployment", "ExternalSecret", "HorizontalPodAutoscaler", "Job", "Namespace", "NetworkPolicy", "PodDisruptionBudget",
			"PodMonitor", "PrometheusRule", "ScaledObject", "Service", "ServiceAccount",
		},
	}
	each(t, func(t *testing.T, s shape) {
		var kinds []string
		seen := map[string]bool{}
		for _, o := range s.objects {
			kinds = append(kinds, o.kind)
			if id := o.kind + " " + o.name; seen[id] {
				t.Errorf("two of %s", id)
			} else {
				seen[id] = true
			}
			if s.name != "base" && o.kind != "Namespace" && o.namespace == "" {
				t.Errorf("%s %s is in no namespace", o.kind, o.name)
			}
		}
		slices.Sort(kinds)
		if kinds = slices.Compact(kinds); !reflect.DeepEqual(kinds, want[s.name]) {
			t.Errorf("has %v, want %v", kinds, want[s.name])
		}
		deployments := of[appsv1.Deployment](s)
		for _, service := range services {
			if deployments["palimpsest-"+service] == nil {
				t.Errorf("no Deployment of %s", service)
			}
		}
		if len(deployments) != len(services) {
			t.Errorf("%d Deployments", len(deployments))
		}
	})
}

// A field that does not exist must be refused, or these tests prove nothing.
func TestDecodingIsStrict(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"replica":3}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"template":{"spec":{"containers":[{"name":"x","securityContext":{"runAsRoot":false}}]}}}}`,
		`{"apiVersion":"apps/v1","kind":"Deploiment","metadata":{"name":"x"}}`,
	} {
		if _, _, err := codecs.UniversalDeserializer().Decode([]byte(text), nil, nil); err == nil {
			t.Errorf("%s is let through", text)
		}
	}
	scaled := extensions["keda.sh/v1alpha1 ScaledObject"]()
	strict := json.NewDecoder(bytes.NewReader([]byte(`{"spec":{"maxReplicas":3}}`)))
	strict.DisallowUnknownFields()
	if strict.Decode(scaled) == nil {
		t.Error("a field that a ScaledObject lacks is let through")
	}
}

// workload is whatever runs pods.
type workload struct {
	kind, name string
	selector   *metav1.LabelSelector // nil of a Job
	template   corev1.PodTemplateSpec
}

func (s shape) workloads() []workload {
	var all []workload
	for name, d := range of[appsv1.Deployment](s) {
		all = append(all, workload{"Deployment", name, d.Spec.Selector, d.Spec.Template})
	}
	for name, d := range of[appsv1.StatefulSet](s) {
		all = append(all, workload{"StatefulSet", name, d.Spec.Selector, d.Spec.Template})
	}
	for name, j := range of[batchv1.Job](s) {
		all = append(all, workload{"Job", name, nil, j.Spec.Template})
	}
	return all
}
