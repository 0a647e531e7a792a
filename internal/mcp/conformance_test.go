package mcp

import (
	"context"
	"testing"

	"palimpsest/internal/httpserver"
	"palimpsest/internal/mcp/conformancetest"
)

// TestConformance: a server with the fixtures of the official suite passes all of it
// over the transport of the product.
func TestConformance(t *testing.T) {
	t.Parallel()
	s := fixtures()
	config := httpserver.DefaultConfig()
	config.Listen = "127.0.0.1:0"
	server, err := httpserver.Listen(config, streamable(s, true), quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	defer func() {
		for session := range s.Sessions() {
			_ = session.Close()
		}
		stop()
		if err := receive(t, served); err != nil {
			t.Error(err)
		}
	}()
	conformancetest.Run(t, "../..", server.URL()+"/mcp", "")
}
