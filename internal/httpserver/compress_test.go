package httpserver

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw sends a request, and reads the answer as it comes over the wire.
func raw(t *testing.T, method, url string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func TestAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	long := `{"text":"` + strings.Repeat("palimpsest ", 1000) + `"}`
	s := serve(t, local(), func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("set a deadline: %v", err)
		}
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		text := long
		if r.URL.Path == "/short" {
			text = "{}"
		}
		_, _ = io.WriteString(w, text)
	})
	for name, c := range map[string]struct {
		path, accept string
		compressed   bool
	}{
		"JSON":          {"/?type=application/json", "gzip, br", true},
		"lines of JSON": {"/?type=application/x-ndjson", "gzip", true},
		"problems":      {"/?type=application/problem%2Bjson", "gzip", true},
		"a short one":   {"/short?type=application/json", "gzip", false},
		"not asked for": {"/?type=application/json", "", false},
		"bytes":         {"/?type=application/octet-stream", "gzip", false},
	} {
		var headers []string
		if c.accept != "" {
			headers = []string{"Accept-Encoding", c.accept}
		}
		res := raw(t, http.MethodGet, s.url+c.path, headers...)
		var body io.Reader = res.Body
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != c.compressed {
			t.Errorf("%s: compressed %v", name, got)
			continue
		}
		if c.compressed {
			unzip, err := gzip.NewReader(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = unzip
		}
		text, err := io.ReadAll(body)
		if err != nil || string(text) != long && string(text) != "{}" {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
}

// An event arrives when it is written, not when the answer ends.
func TestEventsAreNotHeldBack(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	s := serve(t, local(), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+strings.Repeat("x", 2*leastCompressed)+"\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		select {
		case <-seen:
		case <-r.Context().Done():
			t.Error("the event did not arrive")
		}
	})
	res := raw(t, http.MethodGet, s.url, "Accept-Encoding", "gzip", "Accept", "text/event-stream")
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	close(seen)
	if err != nil || res.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(line, "data: x") {
		t.Errorf("%q, %v, %v", line, err, res.Header)
	}
}

func TestPagesOfListedOriginsMayCall(t *testing.T) {
	t.Parallel()
	config := local()
	config.Origins = []string{"https://console.example"}
	s := serve(t, config, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	none := serve(t, local(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for name, c := range map[string]struct {
		url, origin string
		allowed     bool
	}{
		"listed":          {s.url, "https://console.example", true},
		"another":         {s.url, "https://attacker.example", false},
		"the same, plain": {s.url, "http://console.example", false},
		"off by default":  {none.url, "https://console.example", false},
	} {
		asked := raw(t, http.MethodOptions, c.url, "Origin", c.origin,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")
		if got := asked.Header.Get("Access-Control-Allow-Origin"); (got == c.origin) != c.allowed || asked.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: allowed %q", name, got)
		}
		sent := raw(t, http.MethodPost, c.url, "Origin", c.origin, "Sec-Fetch-Site", "cross-site")
		if (sent.StatusCode == http.StatusNoContent) != c.allowed {
			t.Errorf("%s: %d", name, sent.StatusCode)
		}
	}
	for _, wrong := range []string{"*", "console.example", "https://", "https://*.example", "https://a.example/", "HTTPS://a.example", "ftp://a"} {
		config.Origins = []string{wrong}
		if config.Validate() == nil {
			t.Errorf("%q is taken for an origin", wrong)
		}
	}
}
