package mcp

import (
	"context"
	"errors"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine bounds a message on stdio, in bytes: the default bound of a body over
// HTTP.
const maxLine = 8 << 20

// Serve answers one client, which writes to in and reads from out, until in ends
// or ctx does.
func Serve(ctx context.Context, memory Memory, config Config, in io.Reader, out io.Writer) error {
	pipe := &sdk.IOTransport{Reader: io.NopCloser(in), Writer: open{out}, MaxLineLength: maxLine}
	if err := New(memory, config).Run(ctx, pipe); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// open is a writer that is left open: it belongs to the process.
type open struct{ io.Writer }

func (open) Close() error { return nil }
