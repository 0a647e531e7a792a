package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
)

const (
	// publishWindow is how many messages may wait for their acknowledgement.
	publishWindow = 256
	// publishRetry is the pause between two attempts to reach a server that was
	// lost.
	publishRetry = 250 * time.Millisecond
	// publishSource is the source of the events that the command publishes.
	publishSource = "palimpsest/publish"
)

// errInterrupted: the user stopped the command.
var errInterrupted = errors.New("interrupted")

type publishCommand struct {
	User    string `help:"User that the lines belong to." placeholder:"ID"`
	Agent   string `help:"Agent that the lines belong to." placeholder:"ID"`
	Session string `help:"Session that the lines belong to." placeholder:"ID"`
	Role    string `help:"Role of the speaker." enum:"user,assistant,system,tool" default:"user"`
	NATS    string `name:"nats" help:"NATS address; the configured one unless given." placeholder:"URL"`
	Quiet   bool   `help:"No progress bar."`
}

// Run implements the command: it returns once every line is acknowledged, or
// says which is not.
func (c *publishCommand) Run(inv *app.Invocation) error {
	conn, js, err := inv.Publisher(c.NATS, jetstream.WithPublishAsyncMaxPending(publishWindow))
	if err != nil {
		return err
	}
	defer conn.Close()
	p := &publication{
		command: c, js: js, connected: conn.IsConnected, project: inv.Project(), batch: uuid.NewString(),
		tell: func(text string) { _, _ = fmt.Fprintln(inv.Terminal().Err, "publish: "+text) },
	}
	bar, done := c.progress(inv)
	n, err := p.all(inv.Context(), inv.Terminal().In, bar)
	done()
	if err != nil {
		return fmt.Errorf("publish: %w (%d acknowledged before it)", err, n)
	}
	return inv.Print(map[string]int{"published": n}, func(w io.Writer) { _, _ = fmt.Fprintf(w, "%d published\n", n) })
}

// progress returns a bar that counts, on a terminal; elsewhere nothing is drawn.
func (c *publishCommand) progress(inv *app.Invocation) (count func(), done func()) {
	if c.Quiet || !terminal.Is(inv.Terminal().Err) {
		return func() {}, func() {}
	}
	p := mpb.New(mpb.WithOutput(inv.Terminal().Err))
	bar := p.AddSpinner(0, mpb.PrependDecorators(decor.Name("published "), decor.CurrentNoUnit("%d")),
		mpb.AppendDecorators(decor.AverageSpeed(0, "%.0f/s")), mpb.BarRemoveOnComplete())
	return bar.Increment, func() { bar.SetTotal(-1, true); p.Wait() }
}
