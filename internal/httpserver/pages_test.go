package httpserver

import (
	"encoding/json"
	"net"
	"net/http"
	"testing"

	"palimpsest/pkg/api"
)

func TestWebPagesAreKeptOut(t *testing.T) {
	t.Parallel()
	config := local()
	config.Hosts = []string{"memory.example"}
	s := serve(t, config, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for name, c := range map[string]struct {
		method, host string
		headers      map[string]string
		refused      string // the field, or nothing
	}{
		"a program":                 {method: "POST"},
		"by address":                {method: "POST", host: "127.0.0.1:8080"},
		"by the other loopback":     {method: "GET", host: "[::1]:8080"},
		"by localhost":              {method: "POST", host: "LocalHost:8080"},
		"by a name of ours":         {method: "POST", host: "memory.example"},
		"a name that was rebound":   {method: "GET", host: "attacker.example:8080", refused: "Host"},
		"a name that begins so":     {method: "GET", host: "127.0.0.1.attacker.example", refused: "Host"},
		"a form of another site":    {method: "POST", headers: map[string]string{"Origin": "https://attacker.example"}, refused: "Origin"},
		"a page of another port":    {method: "DELETE", headers: map[string]string{"Origin": "http://127.0.0.1:1"}, refused: "Origin"},
		"a page in a sandbox":       {method: "POST", headers: map[string]string{"Origin": "null"}, refused: "Origin"},
		"as the browser says":       {method: "POST", headers: map[string]string{"Sec-Fetch-Site": "cross-site"}, refused: "Origin"},
		"a link on another site":    {method: "GET", headers: map[string]string{"Sec-Fetch-Site": "cross-site"}},
		"our own interactive pages": {method: "POST", headers: map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": s.url}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), c.method, s.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = c.host
			for header, value := range c.headers {
				req.Header.Set(header, value)
			}
			res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if c.refused == "" {
				if res.StatusCode != http.StatusNoContent {
					t.Errorf("status %d", res.StatusCode)
				}
				return
			}
			var p api.Problem
			if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != http.StatusForbidden || p.Code != api.CodeForbidden || p.Field != c.refused {
				t.Errorf("status %d, %+v", res.StatusCode, p)
			}
		})
	}
}

func TestNamesAreOpenBeyondLoopback(t *testing.T) {
	t.Parallel()
	everywhere := &net.TCPAddr{IP: net.IPv4zero, Port: 8080}
	if c := local(); !c.named(everywhere)("palimpsest-query.memory.svc:8080") {
		t.Error("a name in a cluster is refused")
	}
	c := local()
	c.Hosts = []string{"memory.example"}
	if c.named(everywhere)("attacker.example") || !c.named(everywhere)("memory.example:443") {
		t.Error("the names that were given do not count")
	}
}
