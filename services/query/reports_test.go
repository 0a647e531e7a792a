package query

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

func TestReports(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	names, err := r.client.Reports(t.Context())
	if err != nil || len(names.Reports) != len(reports) {
		t.Fatalf("%+v, %v", names, err)
	}
	want := map[string]string{
		"deltas":   "day,rule,kind,deltas\n2026-04-02,turn,add,2\n",
		"noops":    "rule,deltas,noops,noop_share\nturn,8,2,0.25\n",
		"churn":    "user,agent,session,fact_id,changes,flips\nnora,assistant,,f,3,1\n",
		"yield":    "rule,extractor,episodes,candidates,adds,candidates_per_episode,adds_per_candidate\nturn,pack@1,4,2,1,0.5,0.5\nb,,0,1,0,,0\n",
		"safety":   "reason,rule,rule_id,drops\nsafety,turn,safety:ignore safety,2\n",
		"feedback": "fact_id,rating,ratings\nf,negative,2\n",
		"latency":  "rule,facts,p50_ms,p95_ms,p99_ms\nturn,4,1000,2000,3000\n",
		"cost": "rule,model,facts,calls,input_tokens,output_tokens,dollars,calls_per_fact,tokens_per_fact,dollars_per_fact\n" +
			"\"a, b\",m,4,3,100,20,0.5,0.75,30,0.125\n",
	}
	for _, n := range names.Reports {
		a := r.do(http.MethodGet, "/v1/reports/"+n.Name+"?all=true&format=csv", "")
		if diff := cmp.Diff(want[n.Name], a.body); diff != "" || a.header.Get("Content-Type") != csvType || n.About == "" {
			t.Errorf("%s: %v %s", n.Name, a.header, diff)
		}
	}
	got, err := r.client.Report(t.Context(), "yield", scope.Selector{User: ptr("nora")}, client.ReportRange{From: noon, To: noon.Add(time.Hour), Limit: 7})
	if err != nil {
		t.Fatal(err)
	}
	wantReport := api.Report{
		Name: "yield", From: noon, To: noon.Add(time.Hour), Columns: strings.Split("rule,extractor,episodes,candidates,adds,candidates_per_episode,adds_per_candidate", ","),
		Rows: []map[string]any{
			{"rule": "turn", "extractor": "pack@1", "episodes": 4., "candidates": 2., "adds": 1., "candidates_per_episode": 0.5, "adds_per_candidate": 0.5},
			{"rule": "b", "extractor": "", "episodes": 0., "candidates": 1., "adds": 0., "candidates_per_episode": nil, "adds_per_candidate": 0.},
		},
	}
	if diff := cmp.Diff(wantReport, got); diff != "" {
		t.Error(diff)
	}
	asked := audit.ReportQuery{Selector: scope.Selector{Project: "default", User: ptr("nora")}, From: noon, To: noon.Add(time.Hour), Limit: 7}
	if diff := cmp.Diff(asked, r.log.asked); diff != "" {
		t.Errorf("asked: %s", diff)
	}
}

func TestReportsRefuse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for path, want := range map[string]struct {
		status int
		field  string
	}{
		"nonsense": {404, "name"}, "churn?user=u&from=soon": {400, "from"}, "churn?user=u&to=2026-02-30": {400, "to"}, "churn?limit=10001": {400, "limit"},
		"churn?format=xml": {400, "format"}, "churn?user=u&session=s": {400, "session"}, "churn?user=u&user=v": {400, "user"},
	} {
		if p := r.do(http.MethodGet, "/v1/reports/"+path, "").problem(t); p.Status != want.status || p.Field != want.field {
			t.Errorf("%s: %+v", path, p)
		}
	}
	r.log.err = errDown
	for _, n := range reports {
		a := r.do(http.MethodGet, "/v1/reports/"+n.name+"?all=true", "")
		if p := a.problem(t); p.Status != 503 || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %+v", n.name, p)
		}
	}
}
