package app

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"palimpsest/internal/auth"
	"palimpsest/internal/broker"
	"palimpsest/internal/pipeline"
)

// service is a service as a process runs it. Each needs the streams and the memory
// store; what else it needs is opened where it is wanted.
type service struct {
	name string
	// auditLog: it works on the audit log.
	auditLog bool
	// answers: it serves an API to callers, besides its own status.
	answers bool
	// embeds: it gives texts their vectors, so that its embedder is the one that the
	// memory store is to have.
	embeds bool
	wire   func(h *process) (pipeline.Service, error)
}

// services are all services, in the order in which data meets them.
var services = []service{
	{name: "ingest", embeds: true, wire: (*process).wireIngest},
	{name: "scheduler", wire: (*process).wireScheduler},
	{name: "extractor", wire: (*process).wireExtractor},
	{name: "decider", wire: (*process).wireDecider},
	{name: "consolidator", auditLog: true, wire: (*process).wireConsolidator},
	{name: "query", auditLog: true, answers: true, wire: (*process).wireQuery},
}

// target lists the services of one process. It decides which of them are wired and
// which backends are opened for them; the services do not depend on it.
type target struct {
	name     string
	services []service
	entire   bool // it has every service
}

// whole is everything in one process.
func whole() target { return target{"up", services, true} }

// alone is one service, by its name.
func alone(name string) target {
	return target{name, slices.DeleteFunc(slices.Clone(services), func(p service) bool { return p.name != name }), false}
}

func (s target) auditLog() bool {
	return slices.ContainsFunc(s.services, func(p service) bool { return p.auditLog })
}

func (s target) answers() bool {
	return slices.ContainsFunc(s.services, func(p service) bool { return p.answers })
}

func (s target) embeds() bool {
	return slices.ContainsFunc(s.services, func(p service) bool { return p.embeds })
}

// validate names the settings that the process cannot work with: a backend that
// belongs to one process where several share it.
func (s target) validate(c Config) error {
	var errs []error
	own := func(key, value, instead string) {
		errs = append(errs, fmt.Errorf("%s: %q belongs to one process, and \"palimpsest %s\" is one of several: name %s, or use \"palimpsest up\"",
			key, value, s.name, instead))
	}
	if len(s.services) < len(services) {
		if c.NATS.Own() {
			own("nats.url", broker.OwnServer, "nats://…")
		}
		if c.Memory == backendFile {
			own("memory", backendFile, "redis://…")
		}
		if c.Audit == backendFile && s.auditLog() {
			own("audit", backendFile, "clickhouse://…")
		}
	}
	return errors.Join(errs...)
}

// warn says at the start what is allowed and yet not wise.
func (s target) warn(c Config, log *slog.Logger) {
	if s.answers() && c.HTTP.Mode() == auth.Off && c.HTTP.Reachable() {
		log.Warn("the HTTP API takes no keys: every caller that reaches it reads and writes everything", "listen", c.HTTP.Listen)
	}
}
