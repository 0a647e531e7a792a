package mem0

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
)

// A delete reaches what fulfils the whole filter. One that cannot be read deletes
// nothing.
func TestDeleteKeepsToItsFilters(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		query, filters string
		status         int
		deleted        []string
	}{
		{"", `{"user_id":"ada"}`, 200, []string{"/v1/scopes?user=ada"}},
		{"", `{"AND":[{"user_id":"ada"},{"run_id":"r"}]}`, 200, []string{"/v1/scopes?session=r&user=ada"}},
		{"user_id=ada", `{'run_id': 'r'}`, 200, []string{"/v1/scopes?session=r&user=ada"}},
		{"user_id=ada", `{"metadata":{"k":"v"}}`, 200, []string{"/v1/facts/a"}},
		{"user_id=*", "", 200, []string{"/v1/facts/a"}},
		{"app_id=x", "", 200, []string{"/v1/facts/a"}},
		{"user_id=ada", `nonsense`, 400, nil},
		{"", `{"user_id":"ada","run_id":5}`, 400, nil},
		{"", `{"OR":[{"user_id":"ada"},{"topic":"x"}]}`, 400, nil},
		{"", "", 400, nil},
	} {
		var deleted []string
		h := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				deleted = append(deleted, r.URL.RequestURI())
			}
			_, _ = io.WriteString(w, `{"facts":[{"id":"a"}]}`)
		})
		got := do(h, "DELETE", "/v1/memories/?"+tc.query+"&filters="+url.QueryEscape(tc.filters), "")
		if got.Code != tc.status {
			t.Errorf("%s %s: %d %s", tc.query, tc.filters, got.Code, got.Body)
		}
		if diff := cmp.Diff(tc.deleted, deleted); diff != "" {
			t.Errorf("%s %s: %s", tc.query, tc.filters, diff)
		}
	}
}

// The answer to a batch counts what was deleted: not what is unknown.
func TestRemovedBatchIsCounted(t *testing.T) {
	t.Parallel()
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/facts/known" {
			p := api.NewProblem(http.StatusNotFound, api.CodeNotFound, "", "no such fact")
			w.Header().Set("Content-Type", p.ContentType(""))
			w.WriteHeader(p.Status)
			_ = json.NewEncoder(w).Encode(p)
			return
		}
		_, _ = io.WriteString(w, `{"status":"done"}`)
	})
	for body, want := range map[string]string{
		`{"memories":[{"memory_id":"known"}]}`:                         "Successfully deleted 1 memory",
		`{"memories":[{"memory_id":"other"}]}`:                         "Successfully deleted 0 memories",
		`{"memories":[{"memory_id":"other"},{"memory_id":"known"}]}`:   "Successfully deleted 1 memory",
		`{"memories":[{"memory_id":"other"},{"memory_id":"another"}]}`: "Successfully deleted 0 memories",
	} {
		if got := do(h, "DELETE", "/v1/batch/", body); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"`+want+`"`) {
			t.Errorf("%s: %d %s, want %s", body, got.Code, got.Body, want)
		}
	}
}

func TestNoEntityHasTheNameOfAll(t *testing.T) {
	t.Parallel()
	h := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the native API is called") })
	if got := do(h, "DELETE", "/v2/entities/user/%2A/", ""); got.Code != http.StatusNotFound {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestWrittenFilters(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]map[string]any{
		`{'user_id': 'ada'}`:                      {"user_id": "ada"},
		`{'user_id': "d'Arc", 'run_id': 'a"b'}`:   {"user_id": "d'Arc", "run_id": `a"b`},
		`{'user_id': 'a\'b"c'}`:                   {"user_id": `a'b"c`},
		`{"agent_id":"x","created_at":{"gte":1}}`: {"agent_id": "x", "created_at": map[string]any{"gte": 1.0}},
	} {
		if got, err := writtenFilters(written); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v", written, got, err)
		}
	}
	for _, written := range []string{`nonsense`, `[]`, `"x"`, `{'user_id': None}`} {
		if got, err := writtenFilters(written); err == nil {
			t.Errorf("%s: %v", written, got)
		}
	}
}

// A rating goes to the native route in its words, and null takes one back.
func TestFeedback(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"memory_id":"m","feedback":"VERY_NEGATIVE","feedback_reason":"old"}`: `{"fact_id":"m","rating":"very_negative","reason":"old"}`,
		`{"memory_id":"m","feedback":null,"feedback_reason":null}`:             `{"fact_id":"m","rating":"none"}`,
	} {
		sent := ""
		h := serve(t, func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			sent = r.Method + " " + r.URL.Path + " " + strings.TrimSpace(string(text))
			_, _ = io.WriteString(w, `{"correlation_id":"c","status":"done"}`)
		})
		var asked, got map[string]any
		answer := do(h, "POST", "/v1/feedback/", body)
		if err := errors.Join(json.Unmarshal([]byte(body), &asked), json.Unmarshal(answer.Body.Bytes(), &got)); err != nil || answer.Code != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", body, answer.Code, answer.Body, err)
		}
		asked["id"] = "c"
		if diff := cmp.Diff(asked, got); diff != "" || sent != "POST /v1/feedback "+want {
			t.Errorf("%s: sent %s (-want +got):\n%s", body, sent, diff)
		}
	}
	h := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the native API is called") })
	if got := do(h, "POST", "/v1/feedback/", `{"feedback":"POSITIVE"}`); got.Code != http.StatusBadRequest {
		t.Errorf("without a memory: %d %s", got.Code, got.Body)
	}
}
