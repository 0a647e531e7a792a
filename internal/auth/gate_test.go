package auth_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"palimpsest/internal/auth"
	"palimpsest/pkg/api"
)

func TestGate(t *testing.T) {
	t.Parallel()
	r := start(t, auth.Limits{}, time.Now)
	gate := &auth.Gate{Ring: r.ring, Mode: auth.Auto, Log: quiet}
	server := httptest.NewServer(gate.Handler(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if p := auth.Allow(q.Context(), auth.Writer); p != nil {
			auth.Refuse(w, p)
		}
	})))
	defer server.Close()
	ask := func(headers ...string) (int, http.Header) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Add(headers[i], headers[i+1])
		}
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode, res.Header
	}
	if status, _ := ask(); status != http.StatusOK {
		t.Errorf("without keys: %d", status)
	}
	_, token := r.create(t, writer)
	_, low := r.create(t, auth.Key{Project: "acme", Role: auth.Reader})
	_, slow := r.create(t, auth.Key{Project: "acme", Role: auth.Writer, Limits: auth.Limits{Rate: 0.001, Burst: 2}})
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"no key":       {nil, 401},
		"bearer":       {[]string{"Authorization", "Bearer " + token}, 200},
		"token":        {[]string{"Authorization", "Token " + token}, 200},
		"lower case":   {[]string{"Authorization", "bearer  " + token}, 200},
		"own header":   {[]string{"X-API-Key", token}, 200},
		"basic":        {[]string{"Authorization", "Basic " + token}, 401},
		"bare":         {[]string{"Authorization", token}, 401},
		"wrong":        {[]string{"X-API-Key", token + "0"}, 401},
		"both":         {[]string{"X-API-Key", token, "Authorization", "Bearer " + token}, 401},
		"twice":        {[]string{"X-API-Key", token, "X-API-Key", low}, 401},
		"a low role":   {[]string{"X-API-Key", low}, 403},
		"first of two": {[]string{"X-API-Key", slow}, 200},
	} {
		status, header := ask(c.headers...)
		if status != c.status || (status == 401) != (header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d, want %d; %v", name, status, c.status, header)
		}
	}
	if status, header := ask("X-API-Key", slow); status != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
		t.Errorf("too fast: %d %v", status, header)
	}
	gate.Mode = auth.Off
	if status, _ := ask(); status != http.StatusOK {
		t.Errorf("off: %d", status)
	}
}

func TestReachableGateNeedsKeysBeforeThereIsOne(t *testing.T) {
	t.Parallel()
	r := start(t, auth.Limits{}, time.Now)
	if !(&auth.Gate{Ring: r.ring, Mode: auth.Auto, Reachable: true}).Requires() || !(&auth.Gate{Ring: r.ring, Mode: auth.Required}).Requires() {
		t.Error("strangers are let in")
	}
	if p := auth.Allow(t.Context(), auth.Reader); p == nil || p.Code != api.CodeUnauthorized {
		t.Errorf("a context without a caller: %v", p)
	}
}
