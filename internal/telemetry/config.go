package telemetry

import (
	"errors"
	"fmt"
	"net/url"
)

// Config says where traces and metrics go, besides what is served.
type Config struct {
	OTLP OTLP
	// Sampling is the share of the traces begun here that is recorded, 0 to 1. A
	// trace that a publisher began is recorded if the publisher's is.
	Sampling float64
}

// OTLP names a collector. Headers, certificates, timeouts and the like are taken
// from the standard variables OTEL_EXPORTER_OTLP_….
type OTLP struct {
	// Endpoint is the collector's URL, as http://127.0.0.1:4317. Empty: nothing is
	// traced or exported.
	Endpoint string
	// Protocol is grpc or http (protobuf over HTTP).
	Protocol string
}

// The protocols; http also goes by its standard name.
const (
	protocolGRPC     = "grpc"
	protocolHTTP     = "http"
	protocolHTTPLong = "http/protobuf"
)

// DefaultConfig exports nothing, and everything once an endpoint is named.
func DefaultConfig() Config {
	return Config{OTLP: OTLP{Protocol: protocolGRPC}, Sampling: 1}
}

// Validate names every setting that cannot be used.
func (c Config) Validate() error {
	var errs []error
	if c.OTLP.Endpoint != "" {
		u, err := url.Parse(c.OTLP.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, errors.New("telemetry.otlp.endpoint: is not a URL as http://127.0.0.1:4317"))
		}
	}
	switch c.OTLP.Protocol {
	case protocolGRPC, protocolHTTP, protocolHTTPLong:
	default:
		errs = append(errs, fmt.Errorf("telemetry.otlp.protocol: %q is neither grpc nor http", c.OTLP.Protocol))
	}
	if !(c.Sampling >= 0 && c.Sampling <= 1) {
		errs = append(errs, fmt.Errorf("telemetry.sampling: %g is not between 0 and 1", c.Sampling))
	}
	return errors.Join(errs...)
}
