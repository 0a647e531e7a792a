package deploy_test

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// extensions are the kinds that Kubernetes itself lacks. Their types here have the
// fields that we use, by their published names, and no others: the modules that
// publish them bring their whole operators along.
var extensions = map[string]func() any{
	"keda.sh/v1alpha1 ScaledObject":           func() any { return new(scaledObject) },
	"external-secrets.io/v1 ExternalSecret":   func() any { return new(externalSecret) },
	"monitoring.coreos.com/v1 PodMonitor":     func() any { return new(podMonitor) },
	"monitoring.coreos.com/v1 PrometheusRule": func() any { return new(prometheusRule) },
}

type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		PollingInterval int `json:"pollingInterval"`
		CooldownPeriod  int `json:"cooldownPeriod"`
		MinReplicaCount int `json:"minReplicaCount"`
		MaxReplicaCount int `json:"maxReplicaCount"`
		Fallback        struct {
			FailureThreshold int `json:"failureThreshold"`
			Replicas         int `json:"replicas"`
		} `json:"fallback"`
		Advanced struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
		Triggers []struct {
			Type     string `json:"type"`
			Metadata struct {
				ServerAddress string `json:"serverAddress"`
				Query         string `json:"query"`
				Threshold     string `json:"threshold"`
			} `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

type externalSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		RefreshInterval string `json:"refreshInterval"`
		SecretStoreRef  struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"secretStoreRef"`
		Target struct {
			Name           string `json:"name"`
			CreationPolicy string `json:"creationPolicy"`
		} `json:"target"`
		Data []struct {
			SecretKey string `json:"secretKey"`
			RemoteRef struct {
				Key      string `json:"key"`
				Property string `json:"property"`
			} `json:"remoteRef"`
		} `json:"data"`
	} `json:"spec"`
}

type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodTargetLabels     []string             `json:"podTargetLabels"`
		PodMetricsEndpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// prometheusRule has a rules file of Prometheus as its spec, which Prometheus's
// own parser reads.
type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any `json:"spec"`
}
