package redis

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/testengine/redisserver"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"redis://h:1/2":                           "server",
		"rediss://app:pw@h:1/0?ca=ca.pem":         "server",
		"redis://h:1?addr=h:2&addr=h:3":           "cluster",
		"redis://app:pw@h:1/0?master_name=m":      "sentinel",
		"rediss://h:1?master_name=m&addr=h:2":     "sentinel",
		"redis://h:1/0?ca=ca.pem":                 "",
		"rediss://h:1/0?cert=c.pem":               "",
		"http://secret@h:1":                       "",
		"redis://secret@h:1/0?unknown=1":          "",
		"redis://:secret@h:1?addr=h":              "",
		"redis://:secret@h:1/x?master_name=m":     "",
		"redis://:secret@h:port with spaces:1/?x": "",
	} {
		got, err := parseTarget(address)
		kind := ""
		switch {
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error shows the password: %v", address, err)
		case err != nil:
		case got.sentinel != nil:
			kind = "sentinel"
		case got.cluster != nil:
			kind = "cluster"
		default:
			kind = "server"
		}
		if kind != want {
			t.Errorf("%s is %q (%v), want %q", address, kind, err, want)
		}
	}
	got, err := parseTarget("redis://app:pw@h:1/3?master_name=m&sentinel_username=w&sentinel_password=s&addr=h:2")
	if err != nil {
		t.Fatal(err)
	}
	o := got.sentinel
	if o.Username != "app" || o.Password != "pw" || o.SentinelUsername != "w" || o.SentinelPassword != "s" || o.MasterName != "m" || o.DB != 3 || len(o.SentinelAddrs) != 2 {
		t.Errorf("%+v", o)
	}
}

// TestAUserOfFewRights: what a store needs of a server that is shared, over TLS.
func TestAUserOfFewRights(t *testing.T) {
	t.Parallel()
	l := redisserver.Launch(t)
	l.Do("ACL", "SETUSER", "app", "on", ">pw", "~pal:*", "+@all", "-@dangerous", "+info")
	l.Do("ACL", "SETUSER", "default", "off")
	address, ca := encrypted(t, l.Address())
	cfg := ownConfig(l)
	cfg.URL = "rediss://app:pw@" + address + "/0"
	if _, err := Open(t.Context(), cfg); err == nil {
		t.Error("a certificate of an unknown authority was accepted")
	}
	cfg.URL += "?ca=" + ca
	s := openAt(t, cfg)
	tell(t, s, "1", "hello")
	if err := s.Apply(t.Context(), benchEffect("ana", 1), 1); err != nil {
		t.Error(err)
	}
	hits, err := s.SearchText(t.Context(), selAna(), "hello", store.SearchQuery{Target: store.Episodes, Limit: 9})
	if err != nil || len(hits) != 1 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
	whom := memory.Whom{Project: "p", Is: func(user string) bool { return user == "ana" }}
	if done, err := s.Erase(t.Context(), whom); err != nil || len(done.Beyond) != 2 {
		t.Errorf("erased %+v, want the two commands that are refused: %v", done, err)
	}
}

// TestAServerThatForgetsIsToldOf, by each of its settings.
func TestAServerThatForgetsIsToldOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings []string
		words    []string
	}{
		"forgets": {[]string{"--maxmemory-policy", "allkeys-lru", "--appendonly", "no"}, []string{"allkeys-lru", "appendonly", "search-on-timeout"}},
		"keeps":   {[]string{"--search-on-timeout", "fail"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			cfg := ownConfig(redisserver.Launch(t, c.settings...))
			cfg.Pulse, cfg.Logger = time.Hour, slog.New(slog.NewTextHandler(&log, nil))
			openAt(t, cfg)
			if got := strings.Count(log.String(), "WARN"); got != len(c.words) {
				t.Errorf("%d warnings, want %d: %s", got, len(c.words), log.String())
			}
			for _, word := range c.words {
				if !strings.Contains(log.String(), word) {
					t.Errorf("no word of %s: %s", word, log.String())
				}
			}
		})
	}
}

// encrypted is a server that speaks TLS for the one at address, and the file of
// who signed its certificate.
func encrypted(t *testing.T, address string) (own, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			outer, err := listener.Accept()
			if err != nil {
				return
			}
			inner, err := net.Dial("tcp", address)
			if err != nil {
				_ = outer.Close()
				continue
			}
			go pass(outer, inner)
			go pass(inner, outer)
		}
	}()
	return listener.Addr().String(), ca
}

// pass copies until one side ends, which ends the other.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// TestReach: a server that is there lets us in, and keeps nothing of it.
func TestReach(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	if err := Reach(t.Context(), cfg); err != nil {
		t.Error(err)
	}
	client, err := connect(cfg.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if n, err := client.Exists(t.Context(), cfg.Namespace+":witness").Result(); err != nil || n != 0 {
		t.Errorf("%d epoch records, %v", n, err)
	}
}

// TestPool: a process has many calls under way, unless its URL says how many.
func TestPool(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]int{
		"redis://127.0.0.1:1/0":                                poolSize,
		"redis://127.0.0.1:1/0?pool_size=7":                    7,
		"redis://127.0.0.1:1/0?master_name=m&pool_size=7":      7,
		"redis://127.0.0.1:1?addr=127.0.0.1:2":                 poolSize,
		"redis://127.0.0.1:1?addr=127.0.0.1:2&pool_size=7":     7,
		"redis://127.0.0.1:1/0?master_name=m&addr=127.0.0.1:2": poolSize,
	} {
		client, err := connect(address, nil)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		got := 0
		switch c := client.(type) {
		case *goredis.Client:
			got = c.Options().PoolSize
		case *goredis.ClusterClient:
			got = c.Options().PoolSize
		}
		if got != want {
			t.Errorf("%s: %d connections, want %d", address, got, want)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
