package deploy_test

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What a pod refers to is made: ConfigMaps, Secrets, and its account.
func TestReferencesLeadSomewhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shape) {
		for _, w := range s.workloads() {
			pod := w.template.Spec
			if name := pod.ServiceAccountName; name != "" && of[corev1.ServiceAccount](s)[name] == nil {
				t.Errorf("%s: no account %s", w.name, name)
			}
			for _, v := range pod.Volumes {
				if v.ConfigMap != nil && of[corev1.ConfigMap](s)[v.ConfigMap.Name] == nil {
					t.Errorf("%s: no ConfigMap %s", w.name, v.ConfigMap.Name)
				}
			}
			if s.name == "base" {
				continue // Secrets are the overlays'
			}
			for _, c := range pod.Containers {
				for _, from := range c.EnvFrom {
					if of[corev1.Secret](s)[from.SecretRef.Name] == nil {
						t.Errorf("%s: no Secret %s", w.name, from.SecretRef.Name)
					}
				}
				for _, e := range c.Env {
					if e.ValueFrom != nil && !s.makes(e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key) {
						t.Errorf("%s: no Secret for %s", w.name, e.Name)
					}
				}
			}
		}
	})
}

// In the dev overlay every URL leads to a Service, on a port that it has, with the
// password that the engine was given.
func TestDevLogsIn(t *testing.T) {
	t.Parallel()
	all, err := shapes()
	if err != nil {
		t.Fatal(err)
	}
	dev := all[slices.IndexFunc(all, func(s shape) bool { return s.name == "dev" })]
	values := map[string]string{} // of Secrets, by their name without its hash and the key
	for name, secret := range of[corev1.Secret](dev) {
		for key, value := range secret.Data {
			values[dev.origin(name)+" "+key] = string(value)
		}
	}
	checked := 0
	for name, value := range values {
		if !strings.HasSuffix(name, "_URL") {
			continue
		}
		checked++
		at, err := url.Parse(value)
		if err != nil {
			t.Fatal(err)
		}
		port, _ := strconv.Atoi(at.Port())
		service := of[corev1.Service](dev)[at.Hostname()]
		if service == nil || !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return int(p.Port) == port }) {
			t.Errorf("%s leads to %s, which no Service has", name, at.Host)
		}
		password, _ := at.User.Password()
		given := map[string]string{
			"nats":       values["nats-passwords NATS_PASSWORD_"+strings.ToUpper(at.User.Username())],
			"redis":      values["redis-password REDIS_PASSWORD"],
			"clickhouse": values["clickhouse-password CLICKHOUSE_PASSWORD"],
		}[at.Hostname()]
		if given == "" || password != given {
			t.Errorf("%s has the password %q, and %s was given %q", name, password, at.Hostname(), given)
		}
	}
	if checked != len(services)+3 {
		t.Errorf("%d URLs", checked)
	}
	for _, m := range regexp.MustCompile(`password: \$([A-Z_]+)`).FindAllStringSubmatch(string(read(t, "deploy", "nats", "accounts.conf")), -1) {
		if values["nats-passwords "+m[1]] == "" {
			t.Errorf("the server has no %s", m[1])
		}
	}
}
