package app

import (
	"context"
	"fmt"

	"palimpsest/internal/audit/journal"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/services/ingest"
)

// count is for the store that is built anew.
func (r *rebuilding) count(ctx context.Context, said *ingest.Service, live store.Store, into recovery.Draft) error {
	c := recovery.Counting{Ingest: said, Episodes: episodesOf(r.streams.JetStream()), Log: r.auditLog, Journal: r.journal, Into: into}
	if live != nil {
		c.Live = live
	}
	return c.Run(ctx)
}

// count sets the ordinals of a store that lacks episodes of EPISODES. If no service
// of this process has the audit log open, count opens it meanwhile, unless it is the
// file of another process.
func (c cure) count(ctx context.Context, said *ingest.Service, behind store.Store) error {
	past := episodesOf(c.streams.JetStream())
	if begin, err := past.Begin(ctx); err != nil || begin <= 1 {
		return err
	}
	counting := recovery.Counting{Ingest: said, Episodes: past, Journal: journal.New(c.streams.JetStream()), Live: behind, Into: behind}
	switch {
	case c.auditLog != nil:
		counting.Log = c.auditLog
	case c.cfg.Audit != backendFile:
		kept, _, err := openAudit(ctx, c.cfg, c.log)
		if err != nil {
			return fmt.Errorf("count episodes: %w", err)
		}
		defer func() { _ = kept.Close() }() // it was read
		counting.Log = kept
	}
	return counting.Run(ctx)
}
