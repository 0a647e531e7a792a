package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
)

// committed is the i-th effect, committed i minutes after noon, at which time
// AUDIT took it.
func committed(i int) events.Event[events.EffectCommitted] {
	e := effect(i)
	e.Data.CommittedAt = noon.Add(time.Duration(i) * time.Minute)
	e.Arrived = e.Data.CommittedAt
	e.Kind, e.Source, e.CorrelationID = events.KindEffectCommitted, "consolidator", fmt.Sprint("request", i)
	return e
}

func (r *rig) replayed(ctx context.Context, q client.ReplayAudit) (got []uint64, err error) {
	for line, err := range r.client.Replay(ctx, everyone, q) {
		if err != nil {
			return got, err
		}
		got = append(got, line.Sequence)
	}
	return got, nil
}

// revisions is the filter on revisions of the fact scope.
func revisions(of ...string) json.RawMessage {
	return json.RawMessage(`{"field":"scope_revision","operator":"in","value":[` + strings.Join(of, ",") + `]}`)
}

func TestReplayIsNarrowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 6; i++ {
		r.journal.commit(committed(i))
	}
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Minute) }
	for name, tc := range map[string]struct {
		q    client.ReplayAudit
		want []uint64
	}{
		"until":        {client.ReplayAudit{Until: 30}, []uint64{10, 20, 30}},
		"until, exact": {client.ReplayAudit{After: 10, Until: 29}, []uint64{20}},
		"from":         {client.ReplayAudit{From: at(5)}, []uint64{50, 60}},
		"to":           {client.ReplayAudit{To: at(3)}, []uint64{10, 20}},
		"both":         {client.ReplayAudit{From: at(2), To: at(2).Add(1)}, []uint64{20}},
		"never":        {client.ReplayAudit{From: at(3), To: at(2)}, nil},
		"kind":         {client.ReplayAudit{Kinds: []string{"add"}}, []uint64{10}},
		"kinds":        {client.ReplayAudit{Kinds: []string{"add", "update"}, After: 40}, []uint64{50, 60}},
		"no kind":      {client.ReplayAudit{Kinds: []string{"delete", "noop"}}, nil},
		"filters":      {client.ReplayAudit{Filters: revisions("2", "5")}, []uint64{20, 50}},
		"of a kind":    {client.ReplayAudit{Filters: revisions("1", "5"), Kinds: []string{"update"}}, []uint64{50}},
		"limit":        {client.ReplayAudit{From: at(2), Limit: 2}, []uint64{20, 30}},
		"followed":     {client.ReplayAudit{Follow: true, Until: 30}, []uint64{10, 20, 30}},
		"followed to":  {client.ReplayAudit{Follow: true, To: at(2)}, []uint64{10}},
	} {
		got, err := r.replayed(t.Context(), tc.q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for line := range r.client.Audit(t.Context(), everyone, 0) {
		want := api.AuditLine{
			Sequence: 10, ID: "effect1", Type: string(events.KindEffectCommitted), Source: "consolidator", Time: noon,
			Project: "default", Subject: nora.Key(), CorrelationID: "request1", Data: line.Data,
		}
		if diff := cmp.Diff(want, line); diff != "" {
			t.Error(diff)
		}
		break
	}
}

// A replay by time begins an hour early, for clocks differ, and leaves nothing
// out that it finds there.
func TestReplayGoesByTheCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 6; i++ {
		e := committed(i)
		e.Arrived = noon.Add(time.Duration(i-3) * time.Hour) // 20 arrived an hour before
		r.journal.commit(e)
	}
	got, err := r.replayed(t.Context(), client.ReplayAudit{From: noon, To: noon.Add(4 * time.Minute)})
	if diff := cmp.Diff([]uint64{20, 30}, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	if r.journal.asked != 10 {
		t.Errorf("read behind %d, want 10", r.journal.asked)
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for query, field := range map[string]string{
		"after=x": "after", "after=-1": "after", "until=1.5": "until", "from=yesterday": "from", "to=2026-13-01": "to", "kind=merge": "kind", "limit=-1": "limit",
		`filters={"field":"rul","operator":"eq","value":"x"}`: "filters.field", "filters=x": "filters",
	} {
		for _, accept := range []string{"*/*", "text/event-stream"} {
			p := r.do(http.MethodGet, "/v1/audit?all=true&"+query, "", "Accept", accept).problem(t)
			if p.Status != 400 && p.Status != 422 || !strings.HasPrefix(p.Field, field) {
				t.Errorf("%s: %+v", query, p)
			}
		}
	}
	if p := r.do(http.MethodGet, "/v1/audit?all=true", "", "Last-Event-ID", "seven").problem(t); p.Field != "Last-Event-ID" {
		t.Errorf("%+v", p)
	}
}

// What AUDIT has dropped comes from the audit log, if that has it all.
func TestReplayOfWhatWasTrimmed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 6; i++ {
		r.journal.commit(committed(i))
		if i <= 3 {
			e := committed(i)
			e.Arrived = time.Time{}
			r.log.effects = append(r.log.effects, e)
		}
	}
	r.journal.begin = 31
	r.log.last = 30
	for _, tc := range []struct {
		q    client.ReplayAudit
		want []uint64
	}{
		{client.ReplayAudit{}, []uint64{10, 20, 30, 40, 50, 60}},
		{client.ReplayAudit{After: 10, Until: 40}, []uint64{20, 30, 40}},
		{client.ReplayAudit{From: noon.Add(2 * time.Minute), Limit: 3}, []uint64{20, 30, 40}},
		{client.ReplayAudit{After: 30}, []uint64{40, 50, 60}},
		{client.ReplayAudit{Filters: revisions("2", "5")}, []uint64{20, 50}},
		{client.ReplayAudit{After: 50, Until: 60, Follow: true}, []uint64{60}},
	} {
		got, err := r.replayed(t.Context(), tc.q)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%+v: %v (-want +got):\n%s", tc.q, err, diff)
		}
	}
	r.log.last = 20
	for _, follow := range []bool{false, true} {
		_, err := r.replayed(t.Context(), client.ReplayAudit{After: 10, Follow: follow})
		var p *api.Problem
		if !errors.As(err, &p) || p.Status != http.StatusGone || p.Code != api.CodeTrimmed || !strings.Contains(p.Detail, "after=30") {
			t.Errorf("%v", err)
		}
		if got, err := r.replayed(t.Context(), client.ReplayAudit{After: 30, Until: 60, Follow: follow}); err != nil || len(got) != 3 {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// TestReplayWhileMoreIsTrimmed: what AUDIT drops while the log is read comes from
// the log too, or the replay ends there; it leaves nothing out.
func TestReplayWhileMoreIsTrimmed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 6; i++ {
		r.journal.commit(committed(i))
		r.log.effects = append(r.log.effects, committed(i))
	}
	r.journal.begin, r.log.last = 21, 60
	trim := func() { r.journal.trim(41) }
	r.log.read = trim
	got, err := r.replayed(t.Context(), client.ReplayAudit{})
	if diff := cmp.Diff([]uint64{10, 20, 30, 40, 50, 60}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	r.journal.begin, r.log.last = 21, 20
	if got, err = r.replayed(t.Context(), client.ReplayAudit{}); err == nil || len(got) > 2 {
		t.Errorf("with a log that lacks some: %v, %v", got, err)
	}
}

// TestReplayIsOvertaken checks that effects which AUDIT drops ahead of a reader come
// from the log, and that the reader goes on in AUDIT. If the log lacks them, a
// follower gets the reason and the sequence to resume at, and a replay is cut off
// instead of ending as if complete.
func TestReplayIsOvertaken(t *testing.T) {
	t.Parallel()
	for _, follow := range []bool{false, true} {
		r := newRig(t)
		for i := 1; i <= 6; i++ {
			r.journal.commit(committed(i))
			r.log.effects = append(r.log.effects, committed(i))
		}
		r.journal.trimmed, r.log.last = map[uint64]uint64{20: 41}, 60
		got, err := r.replayed(t.Context(), client.ReplayAudit{Follow: follow, Limit: 6})
		if diff := cmp.Diff([]uint64{10, 20, 30, 40, 50, 60}, got); diff != "" || err != nil {
			t.Errorf("follow %v: %v (-want +got):\n%s", follow, err, diff)
		}
		r.journal.trim(1)
		r.log.last = 20
		got, err = r.replayed(t.Context(), client.ReplayAudit{Follow: follow, Limit: 6})
		if diff := cmp.Diff([]uint64{10, 20}, got); diff != "" && follow || err == nil {
			t.Errorf("follow %v, and the log lacks it: %v (-want +got):\n%s", follow, err, diff)
		}
		var p *api.Problem
		if follow && (!errors.As(err, &p) || p.Code != api.CodeTrimmed || !strings.Contains(p.Detail, "after=40")) {
			t.Errorf("who follows is told %v", err)
		}
	}
}
