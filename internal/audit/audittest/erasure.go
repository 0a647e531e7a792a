package audittest

import (
	"testing"

	"palimpsest/internal/audit"
	"palimpsest/internal/memory"
	"palimpsest/pkg/scope"
)

// Erased is the user that [RunErasure] erases.
const Erased = "zqmarkerzq"

// RunErasure fills a log with two users, erases one, and compares the records of the
// other with the previous ones.
func RunErasure(t *testing.T, open func(t *testing.T) audit.Log) {
	t.Helper()
	log, ctx := open(t), t.Context()
	eraser, ok := log.(audit.Eraser)
	if !ok {
		t.Fatalf("%T is no audit.Eraser", log)
	}
	gone, stays := logScope(Erased), logScope("ana")
	kept := LogStory(stays, 6, 2)
	logWrite(t, log, LogStory(gone, 6, 1)...)
	logWrite(t, log, kept...)
	want := logQuery(t, log, scope.Under(stays), audit.Query{Limit: 100})
	whom := memory.Whom{Project: gone.Project, Is: func(user string) bool { return user == Erased }}
	count := func(left uint64) {
		t.Helper()
		n, err := eraser.Scan(ctx, whom)
		if err != nil || n != left {
			t.Errorf("a scan finds %d scopes, want %d: %v", n, left, err)
		}
	}
	count(1)
	done, err := eraser.Erase(ctx, whom)
	if err != nil || done.Effects != 6 || done.Rows <= 6 {
		t.Errorf("erased %+v: %v", done, err)
	}
	count(0)
	if done, err := eraser.Erase(ctx, whom); err != nil || done.Rows > 0 {
		t.Errorf("erased again %+v: %v", done, err)
	}
	if left := logQuery(t, log, scope.Under(gone), audit.Query{Limit: 100}); len(left) > 0 {
		t.Errorf("%d records are left", len(left))
	}
	logDiff(t, want, logQuery(t, log, scope.Under(stays), audit.Query{Limit: 100}))
	// The user may come back, and begins at the first revision again.
	logWrite(t, log, LogStory(gone, 1, 50)...)
	count(1)
}
