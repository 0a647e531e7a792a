package app

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"palimpsest/internal/broker"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/topology"
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
	buryEffect(t, h, nora, whole[1], "")
	buryEffect(t, h, nora, whole[0], "another that stood there") // before AUDIT was lost
	buryEffect(t, h, nora, 1000, "what nobody has")
	stop()
	db, err := sql.Open("sqlite", filepath.Join(dir, "audit.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"effects", "record_rows"} {
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
	if err != nil || len(letters) != 2 || letters[0].MessageBuried.Sequence != whole[0] || letters[1].MessageBuried.Sequence != 1000 {
		t.Errorf("letters left: %+v, %v", letters, err)
	}
	if ever, err := lettersEver(t.Context(), h.streams.JetStream()); err != nil || ever != 3 {
		t.Errorf("%d letters were ever written, %v; want 3", ever, err)
	}
}

// buryEffect makes the letter of the effect at a sequence of AUDIT, or of another
// body that was there.
func buryEffect(t *testing.T, h *house, fact scope.Scope, sequence uint64, body string) {
	t.Helper()
	if body == "" {
		stream, err := h.streams.JetStream().Stream(t.Context(), topology.StreamAudit)
		if err != nil {
			t.Fatal(err)
		}
		msg, err := stream.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		body = string(msg.Data)
	}
	sum := sha256.Sum256([]byte(body))
	_, err := h.runtime.Publisher().Publish(t.Context(), events.Meta{Source: "test"}, events.MessageBuried{
		Scope: fact, Service: h.consolidator.Name(), Stream: topology.StreamAudit, Sequence: sequence,
		Subject: "palimpsest.audit.default.nora._._", MessageKind: events.KindEffectCommitted,
		Code: events.CodePoison, Reason: "the log did not take it", Attempts: 20, BuriedAt: time.Now(),
		Data: []byte(body), Size: len(body), SHA256: hex.EncodeToString(sum[:]),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLettersBehindAHealStay: another process may bury an effect on its way into
// the memory store after this one has healed that. Its letter tells of it until
// the next heal.
func TestLettersBehindAHealStay(t *testing.T) {
	t.Parallel()
	nora := scope.Scope{Project: "default", User: "nora"}
	h, stop := open(t, t.TempDir())
	defer stop()
	tell(t, h, "nora", 1, "I live in Oslo.")
	consolidated(t, h, "nora", 1)
	before, err := h.runtime.Letters().Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sequence, err := broker.NewJournal(h.streams.JetStream()).Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	buryEffect(t, h, nora, sequence, "")
	for _, want := range []int{1, 0} {
		if copied, err := h.unbury(t.Context(), before); err != nil || copied != 1 {
			t.Fatalf("copied %d, %v", copied, err)
		}
		letters(t, h, want)
		before++ // as a heal that began behind it has it
	}
}
