package app

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
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
		Embedder: cfg.Embedder.describe, Streams: topology.Declare(cfg.topology()), Models: models(cfg.LLM),
		Connect: func() (jetstream.JetStream, func(), error) {
			conn, err := cfg.connect(inv.Context())
			if err != nil {
				return nil, nil, err
			}
			js, err := broker.NewJetStream(conn)
			return js, conn.Close, err
		},
	}
	of.NATS, of.Memory, of.Audit = cfg.engines()
	if cfg.NATS.URL == natsEmbedded {
		of.Broker = cfg.NATS.Listen
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

// models are those of the stages, each endpoint once.
func models(c llm.Config) (all []doctor.Model) {
	for _, e := range c.Endpoints() {
		all = append(all, doctor.Model{
			Name: e.Provider + " " + e.Model, Open: func() (*llm.Ladder, error) { return openModel(c, e) },
		})
	}
	return all
}
