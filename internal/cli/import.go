package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/internal/transcript"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
)

const (
	// importBatch and importBytes bound the messages of one request.
	importBatch = 100
	importBytes = 1 << 20
	// The pauses before an attempt to reach a server that is away or busy.
	importPause, importPauseMost = 250 * time.Millisecond, 10 * time.Second
)

type importCommand struct {
	Files []string `arg:"" help:"Exports of ChatGPT, Claude (also as archives), mem0, Zep or Graphiti, or lines of JSON; - is standard input."`
	User  string   `help:"User of messages that do not name one." placeholder:"ID"`
	Agent string   `help:"Agent of messages that do not name one." placeholder:"ID"`
	Quiet bool     `help:"No progress bar."`

	Everything bool   `help:"Import what export --everything wrote into a new data directory."`
	Data       string `help:"With --everything: the data directory; ./palimpsest-data unless configured." placeholder:"DIR"`
}

// imported is the answer.
type imported struct {
	Messages int       `json:"messages"`
	Memories int       `json:"memories"`
	Refused  []refusal `json:"refused,omitempty"`
}

// refusal is a message that the server does not take.
type refusal struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// Run implements the command. All is sent as backfill, which ends no sessions. A
// repetition changes nothing: the ids are those of the source.
func (c *importCommand) Run(inv *app.Invocation) error {
	if c.Everything {
		return c.everything(inv)
	}
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	r := &importing{command: c, client: cl, tell: func(text string) { _, _ = fmt.Fprintln(inv.Terminal().Err, "import: "+text) }}
	progress := terminal.NewProgress(io.Discard)
	if !c.Quiet {
		progress = terminal.NewProgress(inv.Terminal().Err)
	}
	for _, file := range c.Files {
		if err := r.file(inv, file, progress); err != nil {
			return fmt.Errorf("import %s: %w (%d accepted before it; a repetition is harmless)", file, err, r.done.Messages+r.done.Memories)
		}
	}
	progress.Wait()
	err = inv.Print(r.done, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%d messages and %d memories imported\n", r.done.Messages, r.done.Memories)
		for _, x := range r.done.Refused {
			_, _ = fmt.Fprintf(w, "refused %s: %s\n", x.ID, x.Reason)
		}
	})
	if err == nil && len(r.done.Refused) > 0 {
		err = fmt.Errorf("%d messages were refused", len(r.done.Refused))
	}
	return err
}

// everything restores an export into a new data directory.
func (c *importCommand) everything(inv *app.Invocation) error {
	if len(c.Files) != 1 {
		return errors.New("--everything takes one file")
	}
	from := inv.Terminal().In
	if c.Files[0] != "-" {
		file, err := os.Open(c.Files[0])
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	out, err := inv.ImportAll(c.Data, from)
	if err != nil {
		return fmt.Errorf("import %s: %w", c.Files[0], err)
	}
	return inv.Print(out, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%d episodes and %d audit records imported, digest %s\n", out.Episodes, out.Audit, out.Digest)
	})
}

// importing is one run of import.
type importing struct {
	command *importCommand
	client  *client.Client
	tell    func(text string)
	done    imported
	// batch are messages of one scope, all of them memories or none.
	batch  api.Record
	memory bool
	bytes  int
}

func (r *importing) file(inv *app.Invocation, file string, progress *terminal.Progress) error {
	from := transcript.New(inv.Terminal().In)
	if file != "-" {
		var err error
		if from, err = transcript.Open(file); err != nil {
			return err
		}
	}
	defer func() { _ = from.Close() }()
	step, end := progress.Part(filepath.Base(file), uint64(from.Size()))
	at := int64(0)
	for m, err := range from.All() {
		if err != nil {
			return err
		}
		if err := r.add(inv.Context(), m); err != nil {
			return err
		}
		step(int(from.Read() - at))
		at = from.Read()
	}
	if err := r.flush(inv.Context()); err != nil {
		return err
	}
	end()
	return nil
}

// add puts a message into the batch, and sends the batch before one that does not
// fit.
func (r *importing) add(ctx context.Context, m transcript.Message) error {
	who := api.Scope{User: m.User, Agent: m.Agent, Session: m.Session}
	if who.User == "" {
		who.User = r.command.User
	}
	if who.Agent == "" {
		who.Agent = r.command.Agent
	}
	if who.User == "" && who.Agent == "" {
		return errors.New("the export names no user: name one with --user")
	}
	full := len(r.batch.Messages) == importBatch || r.bytes+len(m.Content) > importBytes
	if full || r.batch.Scope != who || r.memory != m.Memory {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	r.batch.Scope, r.memory = who, m.Memory
	r.bytes += len(m.Content)
	message := api.Message{ID: m.ID, Role: m.Role, Content: m.Content, Metadata: m.Metadata, Mode: string(events.ModeBackfill)}
	if !m.Time.IsZero() {
		message.Timestamp = json.RawMessage(m.Time.Format(`"` + time.RFC3339Nano + `"`))
	}
	r.batch.Messages = append(r.batch.Messages, message)
	return nil
}

// flush sends the batch. If the server refuses it, its messages are sent one by one,
// and those that are refused are listed.
func (r *importing) flush(ctx context.Context) error {
	batch := r.batch
	r.batch, r.bytes = api.Record{}, 0
	if len(batch.Messages) == 0 {
		return nil
	}
	if r.memory {
		batch.Infer = new(bool)
	}
	err := r.send(ctx, batch)
	if !refusedMessage(err) {
		return err
	}
	for _, m := range batch.Messages {
		batch.Messages = api.Messages{m}
		err := r.send(ctx, batch)
		if refusedMessage(err) {
			r.done.Refused = append(r.done.Refused, refusal{m.ID, err.Error()})
		} else if err != nil {
			return err
		}
	}
	return nil
}

// refusedMessage reports whether the server refuses a message for its content.
func refusedMessage(err error) bool {
	var p *api.Problem
	return errors.As(err, &p) && (p.Status == http.StatusBadRequest || p.Status == http.StatusConflict || p.Status == http.StatusRequestEntityTooLarge)
}

// send records messages. It waits for a server that is away or busy, without end.
func (r *importing) send(ctx context.Context, batch api.Record) error {
	for pause := importPause; ; pause = min(2*pause, importPauseMost) {
		_, err := r.client.Record(ctx, batch, "")
		var p *api.Problem
		switch {
		case err == nil && r.memory:
			r.done.Memories += len(batch.Messages)
			return nil
		case err == nil:
			r.done.Messages += len(batch.Messages)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &p) && p.Status != http.StatusTooManyRequests && p.Status < http.StatusInternalServerError:
			return err
		}
		if pause == importPause {
			r.tell(fmt.Sprintf("waiting for the server: %v", err))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
