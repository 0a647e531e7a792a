package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"palimpsest/pkg/api"
)

// told returns err as a text for a model. The text names the error and a remedy.
func told(err error) error {
	var p *api.Problem
	var dial *net.OpError
	var late net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return errors.New(problemText(p))
	case errors.Is(err, context.Canceled):
		return errors.New("the call was cancelled; a write may still take effect")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return errors.New("the memory server did not answer in time; a write may still take effect")
	case errors.As(err, &dial), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf(`the memory server cannot be reached (%w); "palimpsest up" starts one. Go on without memory, or try again later`, err)
	}
	return err
}

func problemText(p *api.Problem) string {
	text := p.Detail
	if p.Field != "" {
		text = p.Field + " " + p.Detail
	}
	switch {
	case p.Status == http.StatusUnauthorized:
		return "the memory server refuses the API key of this connection (" + p.Detail + "); the user has to set PALIMPSEST_API_KEY or --api-key-file"
	case p.Code == api.CodeNotFound && p.Field != "user":
		return "there is no such fact; search_memory returns the ids of facts"
	case p.Code == api.CodeFactConflict && p.Current != nil:
		return fmt.Sprintf("%s; the fact is at revision %d now: %s", p.Detail, p.Current.Revision, p.Current.Text)
	case p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests:
		return "the memory is unavailable right now (" + text + "); try again in a few seconds"
	}
	return p.Code + ": " + text
}

func quoted(name string) string { return strconv.Quote(name) }
