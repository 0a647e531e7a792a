package app

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/doctor"
	"palimpsest/internal/llm"
	"palimpsest/internal/topology"
)

// Examine checks an installation: that of the data directory data, or of the
// configured one if data is empty. It changes nothing, and reports a failure as a
// finding.
func (inv *Invocation) Examine(data string) []doctor.Finding {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return doctor.Misconfigured(Version(), err)
	}
	of := doctor.Installation{
		Version: Version(), Server: inv.Flags().Server, Listen: cfg.HTTP.Listen, Ready: inv.ready,
		Writable: writable, Embedder: cfg.Embedder.describe, Streams: topology.Declare(cfg.topology()),
		Memory: cfg.engineAt("memory", memoryFile), Audit: cfg.engineAt("audit", auditFile),
		Models: models(cfg.LLM), Reason: Reason,
		Connect: func() (jetstream.JetStream, func(), error) {
			conn, err := inv.brokerOf(cfg)
			if err != nil {
				return nil, nil, err
			}
			js, err := broker.NewJetStream(conn)
			return js, conn.Close, err
		},
	}
	if cfg.NATS.URL == natsEmbedded {
		of.Broker = cfg.NATS.Listen
	} else {
		of.NATS = cfg.engineAt("nats.url", "")
	}
	if cfg.local() {
		of.Data = cfg.Data
	}
	return doctor.Examine(inv.Context(), of)
}

func (inv *Invocation) ready(ctx context.Context) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	_, err = cl.Ready(ctx)
	return err
}

// engineAt is the engine that a setting names: a file of the data directory, or a
// server.
func (c *Config) engineAt(key, file string) doctor.Engine {
	if c.engine(key) == backendFile {
		return doctor.Engine{File: c.dataPath(file)}
	}
	out := doctor.Engine{URL: config.MaskURL(c.engine(key))}
	for _, s := range c.servers() {
		if s.key == key {
			out.Reach = func(ctx context.Context) error {
				if err := s.reach(ctx); err != nil {
					return c.engineError(&engineError{s.key, err})
				}
				return nil
			}
		}
	}
	return out
}

// models are those of the stages, each endpoint once.
func models(c llm.Config) (all []doctor.Model) {
	asked := map[llm.Endpoint]bool{}
	for _, stage := range llm.Stages {
		endpoint := c.EndpointOf(stage)
		if !c.On() || asked[endpoint] {
			continue
		}
		asked[endpoint] = true
		all = append(all, doctor.Model{
			Name: endpoint.Provider + " " + endpoint.Model,
			Open: func() (*llm.Ladder, error) { return openModel(c, endpoint) },
		})
	}
	return all
}
