package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// greeting is the first that a new connection carries.
type greeting func(ctx context.Context, cn *goredis.Conn) error

// target is what a URL names: one server, a cluster, or whichever server Sentinel
// calls the master.
type target struct {
	server   *goredis.Options
	cluster  *goredis.ClusterOptions
	sentinel *goredis.FailoverOptions
	// ca, cert and key are files for TLS.
	ca, cert, key string
}

// parseTarget reads a URL as the driver does, and besides its parameters those of
// files for TLS and of who Sentinel takes us for. The errors of the driver and of
// net/url would show the password.
func parseTarget(address string) (t target, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return t, errors.New("redis: url cannot be parsed")
	}
	q := u.Query()
	take := func(name string) string {
		value := q.Get(name)
		q.Del(name)
		return value
	}
	t.ca, t.cert, t.key = take("ca"), take("cert"), take("key")
	watcher, secret := take("sentinel_username"), take("sentinel_password")
	user := u.User
	if q.Has("master_name") {
		u.User = nil // Sentinel's, to the driver
	}
	u.RawQuery = q.Encode()
	switch {
	case q.Has("master_name"):
		if t.sentinel, err = goredis.ParseFailoverURL(u.String()); err != nil {
			return t, errors.New("redis: url of Sentinel cannot be used: redis://sentinel:26379/db?master_name=NAME&addr=further:26379")
		}
		t.sentinel.Username = user.Username()
		t.sentinel.Password, _ = user.Password()
		t.sentinel.SentinelUsername, t.sentinel.SentinelPassword = watcher, secret
	case q.Has("addr"):
		if t.cluster, err = goredis.ParseClusterURL(u.String()); err != nil {
			return t, errors.New("redis: url of a cluster cannot be used: redis://node:6379?addr=further:6379")
		}
	default:
		if t.server, err = goredis.ParseURL(u.String()); err != nil {
			return t, errors.New("redis: url cannot be used: redis://user:password@host:6379/db")
		}
	}
	if config := t.tls(); (t.ca != "" || t.cert != "" || t.key != "") && *config == nil {
		return t, errors.New("redis: url names files for TLS, which begins with rediss://")
	}
	if (t.cert == "") != (t.key == "") {
		return t, errors.New("redis: url names one of cert and key without the other")
	}
	return t, nil
}

func (t target) tls() **tls.Config {
	switch {
	case t.sentinel != nil:
		return &t.sentinel.TLSConfig
	case t.cluster != nil:
		return &t.cluster.TLSConfig
	}
	return &t.server.TLSConfig
}

// secure reads the files for TLS.
func (t target) secure() error {
	config := *t.tls()
	if config == nil {
		return nil
	}
	config.MinVersion = tls.VersionTLS12
	if t.sentinel != nil || t.cluster != nil {
		config.ServerName = "" // each server has its own
	}
	if t.ca != "" {
		text, err := os.ReadFile(t.ca)
		if err != nil {
			return fmt.Errorf("redis: read ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("redis: ca: %s holds no certificate", t.ca)
		}
	}
	if t.cert != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return fmt.Errorf("redis: read cert and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// poolSize is how many calls of a process may be in progress, unless the URL sets
// pool_size. The server serves its connections in turn, while the driver gives a
// free one to any caller: with fewer connections some callers on a busy server would
// wait long.
const poolSize = 128

// connect returns a client whose requests are bounded.
func connect(address string, greet greeting) (goredis.UniversalClient, error) {
	client, err := dial(address, greet)
	if err == nil {
		client.AddHook(brief{})
	}
	return client, err
}

// requestLimit bounds one command or pipeline, its retries included. A search has
// a limit of its own beside it.
const requestLimit = 10 * time.Second

// brief ends each request within [requestLimit].
type brief struct{}

// DialHook implements [goredis.Hook]. The driver bounds a dial by itself.
func (brief) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessHook implements [goredis.Hook].
func (brief) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		ctx, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements [goredis.Hook].
func (brief) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		ctx, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		return next(ctx, cmds)
	}
}

// dial takes the replies of protocol 3: only they tell of a search that was
// cut short.
func dial(address string, greet greeting) (goredis.UniversalClient, error) {
	t, err := parseTarget(address)
	if err == nil {
		err = t.secure()
	}
	if err != nil {
		return nil, err
	}
	switch {
	case t.sentinel != nil:
		t.sentinel.Protocol, t.sentinel.ContextTimeoutEnabled, t.sentinel.OnConnect = 3, true, greet
		t.sentinel.PoolSize = cmp.Or(t.sentinel.PoolSize, poolSize)
		return goredis.NewFailoverClient(t.sentinel), nil
	case t.cluster != nil:
		t.cluster.Protocol, t.cluster.ContextTimeoutEnabled, t.cluster.OnConnect = 3, true, greet
		t.cluster.PoolSize = cmp.Or(t.cluster.PoolSize, poolSize)
		return goredis.NewClusterClient(t.cluster), nil
	}
	t.server.Protocol, t.server.ContextTimeoutEnabled, t.server.OnConnect = 3, true, greet
	t.server.PoolSize = cmp.Or(t.server.PoolSize, poolSize)
	return goredis.NewClient(t.server), nil
}
