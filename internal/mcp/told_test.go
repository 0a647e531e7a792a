package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"palimpsest/pkg/api"
)

func TestErrorsAreSentences(t *testing.T) {
	t.Parallel()
	conflict := api.NewProblem(409, api.CodeFactConflict, "If-Match", "f is at revision 5")
	conflict.Current = &api.Fact{Revision: 5, Text: "Nora lives in Bergen."}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tc := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{api.NewProblem(404, api.CodeNotFound, "", "there is no such id here"), "there is no such fact; search_memory returns the ids of facts"},
		{conflict, "f is at revision 5; the fact is at revision 5 now: Nora lives in Bergen."},
		{api.NewProblem(400, api.CodeInvalidField, "limit", "-1 is outside 1 to 1000"), "invalid_field: limit -1 is outside 1 to 1000"},
		{
			api.NewProblem(401, api.CodeUnauthorized, "Authorization", "the key is unknown"),
			"the memory server refuses the API key of this connection (the key is unknown); the user has to set PALIMPSEST_API_KEY or --api-key-file",
		},
		{api.NewProblem(503, api.CodeStoreUnavailable, "", "a dependency does not answer"), "the memory is unavailable right now (a dependency does not answer); try again in a few seconds"},
		{api.NewProblem(429, api.CodeRateLimited, "", "the backlog is long"), "the memory is unavailable right now (the backlog is long); try again in a few seconds"},
		{context.Canceled, "the call was cancelled; a write may still take effect"},
		{fmt.Errorf("reach h: %w", context.DeadlineExceeded), "the memory server did not answer in time; a write may still take effect"},
		{fmt.Errorf("reach h: %w", refused), `the memory server cannot be reached (reach h: dial tcp: connection refused); "palimpsest up" starts one. Go on without memory, or try again later`},
		{fmt.Errorf("reach h: %w", io.EOF), `the memory server cannot be reached (reach h: EOF); "palimpsest up" starts one. Go on without memory, or try again later`},
		{errors.New("decode answer"), "decode answer"},
	} {
		got := ""
		if err := told(tc.err); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%v:\n got %s\nwant %s", tc.err, got, tc.want)
		}
	}
}
