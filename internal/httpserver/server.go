package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"palimpsest/internal/auth"
)

// Config bounds what a client may ask of the server.
type Config struct {
	// Listen is host:port; port 0 takes a free one.
	Listen string `yaml:"listen"`
	// Auth is auto (callers need a key where other machines reach the address, and
	// as soon as there is a key), required or off.
	Auth string `yaml:"auth"`
	// Unprotected is the older spelling of auth: off.
	Unprotected bool `yaml:"unprotected"`
	// MetricsKey is the key of operators in processes that do not answer callers of
	// the API, and so do not read the API keys. It may be the text of an API key.
	MetricsKey string `yaml:"metrics_key" secret:"true"`
	// Limits are those of keys that have none of their own.
	Limits auth.Limits `yaml:"limits"`
	// Hosts are the names, in lower case, under which callers reach the server
	// besides localhost and addresses, without a port. On a loopback address any
	// other name is refused; elsewhere too, once there is one in the list.
	Hosts []string `yaml:"hosts"`
	// Origins are the web pages that may call, such as https://console.example.com;
	// none unless listed.
	Origins []string `yaml:"origins"`
	// MaxBody is the largest request body in bytes.
	MaxBody int64 `yaml:"max_body"`
	// ReadTimeout bounds reading one request, IdleTimeout an idle connection.
	// Answers have no bound of their own: some wait, and some stream for as long
	// as they are read.
	ReadTimeout time.Duration `yaml:"read_timeout"`
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// Drain is how long a stop waits for requests under way before it cancels
	// their contexts.
	Drain time.Duration `yaml:"drain"`
}

// DefaultConfig returns the bounds that ship: loopback only, 8 MiB.
func DefaultConfig() Config {
	return Config{
		Listen: "127.0.0.1:8080", Auth: string(auth.Auto), MaxBody: 8 << 20,
		ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, Drain: 10 * time.Second,
	}
}

// Mode says when callers need a key.
func (c Config) Mode() auth.Mode {
	if c.Unprotected {
		return auth.Off
	}
	return auth.Mode(c.Auth)
}

// Reachable reports whether other machines reach the address to listen on.
func (c Config) Reachable() bool {
	host, _, _ := net.SplitHostPort(c.Listen)
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// Validate refuses bounds with which no request succeeds.
func (c Config) Validate() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("http.listen: %w", err)
	}
	mode, err := auth.ParseMode(c.Auth)
	if err != nil {
		return fmt.Errorf("http.auth: %w", err)
	}
	if c.Unprotected && mode == auth.Required {
		return errors.New("http.unprotected and http.auth: required exclude each other")
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("http.%w", err)
	}
	if c.MaxBody <= 0 || c.ReadTimeout <= 0 || c.IdleTimeout <= 0 || c.Drain <= 0 {
		return errors.New("http: max_body, read_timeout, idle_timeout and drain must be above 0")
	}
	for _, origin := range c.Origins {
		if !isOrigin(origin) {
			return fmt.Errorf("http.origins: %q is not https://host in lower case, with a port where it has one", origin)
		}
	}
	for _, name := range c.Hosts {
		if name == "" || name != strings.ToLower(name) || strings.ContainsAny(name, ":/ ") {
			return fmt.Errorf("http.hosts: %q is not a name in lower case without a port", name)
		}
	}
	return nil
}

// Server is a listening HTTP server.
type Server struct {
	config   Config
	listener net.Listener
	http     *http.Server
	// cancel ends the contexts of requests under way.
	cancel context.CancelFunc
}

// grace is how long a request may still answer after its context has ended.
const grace = time.Second

// Listen takes the address at once, so that a taken port is an error before
// anything is started; Serve answers.
func Listen(config Config, handler http.Handler, log *slog.Logger) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	handler, err := compressing(handler)
	if err != nil {
		return nil, fmt.Errorf("compress answers: %w", err)
	}
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	stopping := make(chan struct{})
	requests, cancel := context.WithCancel(context.WithValue(context.Background(), stoppingKey{}, stopping))
	s := &Server{config: config, listener: listener, cancel: cancel, http: &http.Server{
		Handler:           wrap(withoutPages(config.pages(handler), config.Origins, config.named(listener.Addr())), config.MaxBody, log),
		ReadTimeout:       config.ReadTimeout,
		ReadHeaderTimeout: config.ReadTimeout,
		IdleTimeout:       config.IdleTimeout,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}}
	s.http.RegisterOnShutdown(sync.OnceFunc(func() { close(stopping) }))
	return s, nil
}

type stoppingKey struct{}

// Stopping is closed once the server of a request has begun to stop: an answer
// that would go on for ever must end then, or it holds up the drain. It is nil,
// which never ends anything, where the context is that of no server of ours.
func Stopping(request context.Context) <-chan struct{} {
	stopping, _ := request.Value(stoppingKey{}).(chan struct{})
	return stopping
}

// URL is where the server answers.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Serve answers until ctx ends, then lets requests under way finish within
// Config.Drain, cancels what is left, and closes what does not end.
func (s *Server) Serve(ctx context.Context) error {
	defer s.cancel()
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	s.stop(context.WithoutCancel(ctx))
	<-failed //nolint:errcheck // it says that the listener was closed
	return nil
}

func (s *Server) stop(ctx context.Context) {
	for _, patience := range []time.Duration{s.config.Drain, grace} {
		within, cancel := context.WithTimeout(ctx, patience)
		err := s.http.Shutdown(within)
		cancel()
		if err == nil {
			return
		}
		s.cancel() // waiting handlers answer with partial results
	}
	_ = s.http.Close()
}

// Close gives the address back, unless Serve did.
func (s *Server) Close() error {
	s.cancel()
	if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
