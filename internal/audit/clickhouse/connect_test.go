package clickhouse_test

import (
	"context"
	"crypto/tls"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/audit/clickhouse"
	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/pkg/scope"
)

// patience bounds what must come about in the end.
const patience = time.Minute

var someone = scope.Scope{Project: "p", User: "u"}

// through is a DSN that leads over a relay, with more parameters.
func through(t *testing.T, dsn string, secure *tls.Config, parameters string) (*relay, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	r := startRelay(t, u.Host, secure)
	u.Host = r.address
	if secure != nil && u.Scheme == "http" {
		u.Scheme = "https"
	}
	q := u.Query()
	for name, values := range map[string]string{"secure": "true", "skip_verify": "true"} {
		if strings.Contains(parameters, name) {
			q.Set(name, values)
		}
	}
	u.RawQuery = q.Encode()
	return r, u.String()
}

func readAll(t *testing.T, log *clickhouse.Log) int {
	t.Helper()
	got, err := log.Records(t.Context(), scope.Exactly(someone), audit.Query{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return len(got)
}

// eventually tries until something succeeds.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still: %v", err)
		case <-pause.C:
		}
	}
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	clickhouseserver.Each(t, func(t *testing.T, dsn func(testing.TB) string) {
		way, relayed := through(t, dsn(t), nil, "")
		log := open(t, relayed)
		defer log.Close()
		story := audittest.LogStory(someone, 2, 1)
		if err := log.Write(t.Context(), story[:1]); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			way.cut()
			if err := log.Ping(t.Context()); err == nil {
				t.Error("ping passes without a server")
			}
			if err := log.Write(t.Context(), story[1:]); err == nil {
				t.Error("a write passes without a server")
			}
			_, err := log.Records(t.Context(), scope.Exactly(someone), audit.Query{Rule: "said-in-private", Limit: 1})
			if err == nil || strings.Contains(err.Error(), "said-in-private") {
				t.Errorf("read without a server: %v", err)
			}
			way.restore()
			eventually(t, func() error { return log.Ping(t.Context()) })
		}
		if err := log.Write(t.Context(), story); err != nil {
			t.Fatal(err)
		}
		if n := readAll(t, log); n != 4 {
			t.Errorf("%d records, want 4", n)
		}
	})
}

// Acknowledged effects survive the death of the server.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	server := clickhouseserver.Own(t)
	log := open(t, server.DSN("native", "palimpsest"))
	defer log.Close()
	story := audittest.LogStory(someone, 6, 1)
	for i := range story {
		if i%3 == 2 {
			server.Kill()
		}
		eventually(t, func() error { return log.Write(t.Context(), story[i:i+1]) })
	}
	if n := readAll(t, log); n != 12 {
		t.Errorf("%d records, want 12", n)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil)
	secure := &tls.Config{Certificates: certified.TLS.Certificates}
	certified.Close()
	clickhouseserver.Each(t, func(t *testing.T, dsn func(testing.TB) string) {
		base := dsn(t)
		_, trusting := through(t, base, secure, "secure skip_verify")
		log := open(t, trusting)
		defer log.Close()
		if err := log.Write(t.Context(), audittest.LogStory(someone, 2, 1)); err != nil {
			t.Fatal(err)
		}
		if n := readAll(t, log); n != 4 {
			t.Errorf("%d records, want 4", n)
		}
		_, wary := through(t, base, secure, "secure")
		if log, err := clickhouse.Open(t.Context(), clickhouse.Config{DSN: wary}); err == nil {
			log.Close()
			t.Error("a certificate that nobody vouches for passes")
		}
	})
}

const secret = "hunter2"

func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"clickhouse://u:" + secret + "@127.0.0.1:1/palimpsest",
		"http://127.0.0.1:1/palimpsest?username=u&password=" + secret,
		"clickhouse://u:" + secret + "@127.0.0.1:port/x",
		"clickhouse://u:" + secret + "@",
		"tcp://u:" + secret + "@127.0.0.1:1/x",
		"https://u:" + secret + "@127.0.0.1:1/x",
		"clickhouse://u:" + secret + "@127.0.0.1:1/a-b",
		"clickhouse://u:" + secret + "/@127.0.0.1:1/\x00",
	} {
		_, err := clickhouse.Open(t.Context(), clickhouse.Config{DSN: dsn})
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", strings.ReplaceAll(dsn, secret, "…"), err)
		}
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	clickhouseserver.Each(t, func(t *testing.T, dsn func(testing.TB) string) {
		// The driver leaves the connection of a refused login idle; the relay ends it.
		_, relayed := through(t, dsn(t), nil, "")
		u, err := url.Parse(relayed)
		if err != nil {
			t.Fatal(err)
		}
		if u.Scheme == "clickhouse" {
			t.Skip("the engine in libchdb aborts on a wrong password over the native protocol")
		}
		u.User = url.UserPassword(u.User.Username(), secret)
		_, err = clickhouse.Open(t.Context(), clickhouse.Config{DSN: u.String()})
		if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "Authentication") {
			t.Errorf("%v", err)
		}
	})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cfg  clickhouse.Config
		says string
	}{
		"no dsn":         {clickhouse.Config{}, "dsn is required"},
		"scheme":         {clickhouse.Config{DSN: "mysql://h/d"}, `"mysql"`},
		"no host":        {clickhouse.Config{DSN: "clickhouse:///d"}, "dsn"},
		"database":       {clickhouse.Config{DSN: "clickhouse://h/a`b"}, "database"},
		"parameter":      {clickhouse.Config{DSN: "clickhouse://h/d?dial_timeout=soon"}, "soon"},
		"past retention": {clickhouse.Config{DSN: "clickhouse://h/d", Retention: -1}, "retention"},
		"odd retention":  {clickhouse.Config{DSN: "clickhouse://h/d", Retention: time.Millisecond}, "retention"},
	} {
		if err := test.cfg.Validate(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
	for _, dsn := range []string{"clickhouse://h", "http://h:8123/d", "https://u:p@h/d?secure=true", "clickhouse://a:9000,b:9000/d?compress=zstd"} {
		if err := (clickhouse.Config{DSN: dsn, Retention: time.Hour}).Validate(); err != nil {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// TestReach: a server that is there lets us in, also where its database is yet to
// be made, and one that is not does not.
func TestReach(t *testing.T) {
	t.Parallel()
	clickhouseserver.Each(t, func(t *testing.T, dsn func(testing.TB) string) {
		way, relayed := through(t, dsn(t), nil, "")
		if err := clickhouse.Reach(t.Context(), clickhouse.Config{DSN: relayed}); err != nil {
			t.Error(err)
		}
		way.cut()
		if err := clickhouse.Reach(t.Context(), clickhouse.Config{DSN: relayed}); err == nil {
			t.Error("reached a server that is away")
		}
	})
}
