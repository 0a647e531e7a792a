package doctor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"palimpsest/internal/engine"
)

// portPatience is how long a process has to answer on a port.
const portPatience = 2 * time.Second

// peer is a Palimpsest that answers over HTTP.
type peer struct {
	Version   string    `json:"version"`
	at, asked time.Time // its clock, and ours
}

// http asks the server of the flags or the configuration. A configured address on
// which no server listens is no failure.
func (e *examination) http() (string, error) {
	address := e.Listen
	if e.Server != "" {
		address = e.Server
	} else if text, err := e.unused(address); text != "" || err != nil {
		return text, err
	}
	var err error
	if e.peer, err = e.greet(address); err != nil {
		return "", err
	}
	if err := e.Ready(e.ctx); err != nil {
		return "", fmt.Errorf("%s: %w", address, err)
	}
	return address + " answers and is ready", nil
}

// greet asks who listens on an address.
func (e *examination) greet(address string) (*peer, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	req, err := http.NewRequestWithContext(e.ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/healthz", nil)
	if err != nil {
		return nil, err
	}
	one := http.Client{Timeout: portPatience}
	defer one.CloseIdleConnections()
	res, err := one.Do(req)
	switch call := (*net.OpError)(nil); {
	case errors.As(err, &call) || errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: %w", address, engine.Reason(err))
	case err != nil:
		return nil, fmt.Errorf("%s is taken by another program", address)
	}
	defer res.Body.Close() //nolint:errcheck // nothing to do about it
	p := &peer{asked: time.Now()}
	if err := json.NewDecoder(res.Body).Decode(p); err != nil || p.Version == "" {
		return nil, fmt.Errorf("%s is taken by another program", address)
	}
	p.at, err = http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return nil, fmt.Errorf("%s: read Date: %w", address, err)
	}
	return p, nil
}

// unused describes an address on which no server listens. It returns "" if a
// server accepts connections there.
func (e *examination) unused(address string) (string, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return address + " is free: no Palimpsest runs there", l.Close()
	}
	if conn, dialed := e.dial(address); dialed == nil {
		return "", conn.Close()
	}
	return "", fmt.Errorf("%s: %w", address, engine.Reason(err))
}

func (e *examination) dial(address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: portPatience}
	return dialer.DialContext(e.ctx, "tcp", address)
}

// nats asks the broker, or who listens where the broker of this process would.
func (e *examination) nats() (string, error) {
	if e.Broker == "" {
		return e.ask(e.NATS)
	}
	address := e.Broker
	if text, err := e.unused(address); text != "" || err != nil {
		return text, err
	}
	conn, err := e.dial(address)
	if err != nil {
		return "", fmt.Errorf("%s: %w", address, engine.Reason(err))
	}
	defer conn.Close() //nolint:errcheck // it was only read
	if err := conn.SetReadDeadline(time.Now().Add(portPatience)); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	var info struct {
		Version string `json:"version"`
	}
	text, ok := strings.CutPrefix(line, "INFO ")
	if err != nil || !ok || json.Unmarshal([]byte(text), &info) != nil {
		return "", errors.New(address + " is taken by another program")
	}
	return fmt.Sprintf("%s answers: NATS %s", address, info.Version), nil
}
