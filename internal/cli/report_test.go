package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
)

func TestReport(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/reports" {
			_ = json.NewEncoder(w).Encode(api.ReportNames{Reports: []api.ReportName{{Name: "yield", About: "What came of it."}}})
			return
		}
		if got, want := r.URL.String(), "/v1/reports/yield?from=2026-03-01T00%3A00%3A00Z&limit=5&project=default&user=nora"; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		_ = json.NewEncoder(w).Encode(api.Report{
			Name: "yield", Columns: []string{"rule", "episodes", "share"},
			Rows: []map[string]any{{"rule": "turn", "episodes": 1234567, "share": 1. / 3}, {"rule": "a, b", "episodes": 0, "share": nil}},
		})
	}))
	t.Cleanup(server.Close)
	ask := func(args ...string) string {
		t.Helper()
		code, out, complaint := callWith(t, "", nil, append([]string{"--server", server.URL, "report"}, args...)...)
		if code != exitOK {
			t.Fatalf("%d %s", code, complaint)
		}
		return out
	}
	yield := []string{"yield", "--from", "2026-03-01", "--user", "nora", "--limit", "5"}
	for format, want := range map[string]string{
		"table": "RULE  EPISODES  SHARE\nturn  1234567   0.333\na, b  0         -\n",
		"csv":   "rule,episodes,share\nturn,1234567,0.3333333333333333\n\"a, b\",0,\n",
	} {
		if diff := cmp.Diff(want, ask(append(yield, "--format", format)...)); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
	var r api.Report
	if err := json.Unmarshal([]byte(ask(append(yield, "--format", "json")...)), &r); err != nil || len(r.Rows) != 2 || r.Rows[0]["episodes"] != 1234567. {
		t.Errorf("%+v, %v", r, err)
	}
	if out := ask(); !strings.Contains(out, "What came of it.") {
		t.Errorf("list: %s", out)
	}
	for _, args := range [][]string{{"--limit", "0"}, {"--from", "soon"}, {"--format", "xml"}} {
		if code, _, complaint := callWith(t, "", nil, append([]string{"report", "yield"}, args...)...); code != exitUsage || !strings.Contains(complaint, args[0]) {
			t.Errorf("%v: %d %s", args, code, complaint)
		}
	}
}
