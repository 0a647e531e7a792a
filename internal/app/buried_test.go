package app

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"palimpsest/internal/broker"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestBuriedEffectsAreCopiedAgain: an effect that was buried on its way into the
// audit log is in it after the next start, and its letter is gone; one that AUDIT
// does not hold keeps its letter.
func TestBuriedEffectsAreCopiedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nora := scope.Scope{Project: "default", User: "nora"}
	h, stop := open(t, dir)
	for n := 1; n <= 3; n++ {
		tell(t, h, "nora", n, fmt.Sprintf("I live in Town%d.", n))
		consolidated(t, h, "nora", uint64(n))
	}
	logged := func(h *house) (sequences []uint64, err error) {
		for e, err := range h.auditLog.Effects(t.Context(), nora, 0) {
			if err != nil {
				return nil, err
			}
			sequences = append(sequences, e.Sequence)
		}
		return sequences, nil
	}
	var whole []uint64
	eventually(t, "the log has all", func() error {
		var err error
		if whole, err = logged(h); err == nil && len(whole) != 3 {
			err = fmt.Errorf("%d effects", len(whole))
		}
		return err
	})
	for _, sequence := range []uint64{whole[1], 1000} {
		_, err := h.runtime.Publisher().Publish(t.Context(), events.Meta{Source: "test"}, events.MessageBuried{
			Scope: nora, Service: h.consolidator.Name(), Stream: broker.StreamAudit, Sequence: sequence,
			Subject: "palimpsest.audit.default.nora._._", MessageKind: events.KindEffectCommitted,
			Code: events.CodePoison, Reason: "the log did not take it", Attempts: 20, BuriedAt: time.Now(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	stop()
	db, err := sql.Open("sqlite", filepath.Join(dir, "audit.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"effects", "records"} {
		if _, err := db.ExecContext(t.Context(), "DELETE FROM "+table+" WHERE revision = 2"); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	h, stop = open(t, dir)
	defer stop()
	if got, err := logged(h); err != nil || len(got) != 3 {
		t.Errorf("the log has %v, %v; want %v", got, err, whole)
	}
	letters, _, err := h.runtime.Letters().List(t.Context(), pipeline.LetterFilter{}, 0, 10)
	if err != nil || len(letters) != 1 || letters[0].MessageBuried.Sequence != 1000 {
		t.Errorf("letters left: %+v, %v", letters, err)
	}
}
