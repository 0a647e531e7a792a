package broker_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
)

func TestConnectConfigIsValidated(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]broker.ConnectConfig{
		"no url":          {},
		"two credentials": {URL: "nats://x", Creds: "a", NKeySeed: "b"},
		"half a pair":     {URL: "nats://x", TLS: broker.TLS{Cert: "a"}},
		"no seed":         {URL: "nats://x", NKeySeed: filepath.Join(t.TempDir(), "none")},
		"no roots":        {URL: "nats://x", TLS: broker.TLS{CA: filepath.Join(t.TempDir(), "none")}},
	} {
		if conn, err := broker.Connect(t.Context(), cfg); err == nil {
			conn.Close()
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestConnectGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "nats://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	conn, err := broker.Connect(ctx, broker.ConnectConfig{URL: url})
	if err == nil {
		conn.Close()
		t.Fatal("connected to nothing")
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestConnectWaitsForTheBroker(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	cfg, err := broker.Endpoint(env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	conn := make(chan *nats.Conn, 1)
	restarted := make(chan struct{})
	ctx := bounded(t)
	go func() {
		defer close(conn)
		<-restarted
		c, err := broker.Connect(ctx, cfg)
		if err != nil {
			t.Errorf("connect: %v", err)
			return
		}
		conn <- c
	}()
	close(restarted)
	env.Restart(t)
	if c, ok := <-conn; ok {
		c.Close()
	}
}

func TestConnectOverTLS(t *testing.T) {
	t.Parallel()
	ca, key := selfSigned(t)
	pair, err := tls.LoadX509KeyPair(ca, key)
	if err != nil {
		t.Fatal(err)
	}
	srv := brokertest.Serve(t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, TLS: true,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	})
	conn, err := broker.Connect(bounded(t), broker.ConnectConfig{URL: srv.ClientURL(), TLS: broker.TLS{CA: ca}, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.TLSConnectionState(); err != nil {
		t.Error(err)
	}
	conn.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if conn, err := broker.Connect(ctx, broker.ConnectConfig{URL: srv.ClientURL()}); err == nil {
		conn.Close()
		t.Error("an unknown authority is trusted")
	}
}

// selfSigned makes a certificate for 127.0.0.1 that is its own authority.
func selfSigned(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", private)
}

// A caller need not bound the wait: the library's flush would want a deadline.
func TestConnectWithoutADeadline(t *testing.T) {
	t.Parallel()
	cfg, err := broker.Endpoint(brokertest.Start(t).Dir)
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan error, 1)
	go func() {
		conn, err := broker.Connect(context.Background(), cfg)
		if err == nil {
			conn.Close()
		}
		connected <- err
	}()
	select {
	case err := <-connected:
		if err != nil {
			t.Error(err)
		}
	case <-bounded(t).Done():
		t.Error("did not connect")
	}
}
