package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/terminal"
)

const (
	// publishWindow is how many messages may wait for their acknowledgement.
	publishWindow = 256
	// publishRetry is the pause between two attempts to reach a server that was
	// lost.
	publishRetry = 250 * time.Millisecond
	// connectLimit bounds how long a command tries to reach the broker.
	connectLimit = 10 * time.Second
	// publishSource is the source of the events that the command publishes.
	publishSource = "palimpsest/publish"
)

// errInterrupted: the user stopped the command.
var errInterrupted = errors.New("interrupted")

type publishCommand struct {
	User    string `help:"User that the lines belong to." placeholder:"ID"`
	Agent   string `help:"Agent that the lines belong to." placeholder:"ID"`
	Session string `help:"Session that the lines belong to." placeholder:"ID"`
	Role    string `help:"Who says the lines." enum:"user,assistant,system,tool" default:"user"`
	NATS    string `name:"nats" help:"NATS address; the configured one unless given." placeholder:"URL"`
	Quiet   bool   `help:"No progress bar."`
}

// Run implements the command: it returns once every line is acknowledged, or
// says which is not.
func (c *publishCommand) Run(inv *invocation) error {
	conn, err := c.connect(inv)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := broker.NewJetStream(conn, jetstream.WithPublishAsyncMaxPending(publishWindow))
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	p := &publication{
		command: c, js: js, connected: conn.IsConnected, project: inv.line.Project, batch: uuid.NewString(),
		tell: func(text string) { _, _ = fmt.Fprintln(inv.term.Err, "publish: "+text) },
	}
	bar, done := c.progress(inv)
	n, err := p.all(inv.ctx, inv.term.In, bar)
	done()
	if err != nil {
		return fmt.Errorf("publish: %w (%d acknowledged before it)", err, n)
	}
	return inv.print(map[string]int{"published": n}, func(w io.Writer) { _, _ = fmt.Fprintf(w, "%d published\n", n) })
}

func (c *publishCommand) connect(inv *invocation) (*nats.Conn, error) {
	url := c.NATS
	if url == "" {
		cfg, _, err := inv.configuration(nil)
		if err != nil {
			return nil, err
		}
		if cfg.NATS.URL != natsEmbedded {
			return inv.brokerOf(cfg)
		}
		url = "nats://" + cfg.NATS.Listen
	}
	conn, err := nats.Connect(url, nats.Name("palimpsest publish"), nats.Timeout(5*time.Second),
		nats.MaxReconnects(-1), nats.ReconnectWait(publishRetry), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, fmt.Errorf("reach NATS at %s (is Palimpsest running?): %w", config.MaskURL(url), unreached(inv.ctx, url, err))
	}
	return conn, nil
}

// progress returns a bar that counts, on a terminal; elsewhere nothing is drawn.
func (c *publishCommand) progress(inv *invocation) (count func(), done func()) {
	if c.Quiet || !terminal.Is(inv.term.Err) {
		return func() {}, func() {}
	}
	p := mpb.New(mpb.WithOutput(inv.term.Err))
	bar := p.AddSpinner(0, mpb.PrependDecorators(decor.Name("published "), decor.CurrentNoUnit("%d")),
		mpb.AppendDecorators(decor.AverageSpeed(0, "%.0f/s")), mpb.BarRemoveOnComplete())
	return bar.Increment, func() { bar.SetTotal(-1, true); p.Wait() }
}

// brokerOf connects with the owner's credential to the broker that the
// configuration names.
func (inv *invocation) brokerOf(cfg *Config) (*nats.Conn, error) {
	to := cfg.connection("palimpsest")
	if cfg.NATS.URL == natsEmbedded {
		var err error
		if to, err = broker.Endpoint(cfg.dataPath(natsDir)); err != nil {
			return nil, &userError{fmt.Sprintf(
				"data: no Palimpsest runs on %s: name its directory with --data, or a NATS of your own by nats.url (%v)", cfg.Data, reason(err)), err}
		}
	}
	ctx, cancel := context.WithTimeout(inv.ctx, connectLimit)
	defer cancel()
	conn, err := broker.Connect(ctx, to)
	if err != nil && cfg.NATS.URL != natsEmbedded {
		return nil, plain(*cfg, &engineError{"nats.url", unreached(ctx, cfg.NATS.URL, err)})
	}
	return conn, err
}
