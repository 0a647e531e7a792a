package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"

	"palimpsest/pkg/api"
)

// Mode says when callers need a key.
type Mode string

// The modes. Auto requires keys as soon as there is one, and on an address that
// other machines reach also before.
const (
	Auto     Mode = "auto"
	Required Mode = "required"
	Off      Mode = "off"
)

// ParseMode reads the name of a mode.
func ParseMode(name string) (Mode, error) {
	switch m := Mode(name); m {
	case Auto, Required, Off:
		return m, nil
	}
	return "", fmt.Errorf("%q is none of auto, required, off", name)
}

// Gate finds out who calls.
type Gate struct {
	// Ring is nil where there are no keys, and Mode is Off.
	Ring *Ring
	Mode Mode
	// Reachable: other machines reach the address.
	Reachable bool
	Log       *slog.Logger
}

// Requires reports whether callers need a key.
func (g *Gate) Requires() bool {
	switch g.Mode {
	case Off:
		return false
	case Required:
		return true
	case Auto:
	}
	return g.Reachable || g.Ring.Any()
}

type refusedKey struct{}

// Handler has next serve requests in the name of their caller. A request without a
// good key gets the caller [Anonymous]: [Allow] refuses it where more is needed.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := With(r.Context(), Anyone)
		if g.Requires() {
			var limits Limits
			var err error
			if ctx, limits, err = g.identify(r); err != nil {
				Refuse(w, problem(err))
				return
			}
			var end context.CancelFunc
			ctx, end = whileValid(ctx)
			defer end()
			if limits.MaxBody > 0 && r.Body != nil {
				r.Body = http.MaxBytesReader(w, r.Body, limits.MaxBody)
			}
		}
		own := r.WithContext(ctx)
		next.ServeHTTP(w, own)
		r.Pattern = own.Pattern // those outside count requests by it
	})
}

// identify returns a context with the caller. Only an [*ExcessError] is an error.
func (g *Gate) identify(r *http.Request) (context.Context, Limits, error) {
	token, err := tokenOf(r.Header)
	var caller Caller
	var limits Limits
	if err == nil {
		caller, limits, err = g.Ring.Admit(token)
	}
	if excess := (*ExcessError)(nil); errors.As(err, &excess) {
		return nil, limits, err
	}
	ctx := r.Context()
	if err != nil {
		g.Log.DebugContext(ctx, "auth: caller refused", "error", err)
		return context.WithValue(With(ctx, Caller{}), refusedKey{}, err), limits, nil
	}
	return With(ctx, caller), limits, nil
}

// tokenOf reads the one token of a request.
func tokenOf(h http.Header) (string, error) {
	given, own := h.Values("Authorization"), h.Values("X-API-Key")
	switch {
	case len(given) == 0 && len(own) == 0:
		return "", ErrNoKey
	case len(given)+len(own) > 1:
		return "", ErrUnknown
	case len(own) == 1:
		return strings.TrimSpace(own[0]), nil
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(given[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") && !strings.EqualFold(scheme, "Token") {
		return "", ErrNoKey
	}
	return strings.TrimSpace(token), nil
}

// Allow returns nil if the caller of a context has a role, and else the problem to
// answer with.
func Allow(ctx context.Context, need Role) *api.Problem {
	caller := Of(ctx)
	switch {
	case caller.Role >= need:
		return nil
	case caller.Role == Anonymous:
		err, _ := ctx.Value(refusedKey{}).(error)
		if err == nil {
			err = ErrNoKey
		}
		return problem(err)
	}
	return api.NewProblem(http.StatusForbidden, api.CodeForbidden, "", "this takes a key with the role %s; this key is a %s", need, caller.Role)
}

// problem is the answer for a key that is not accepted.
func problem(err error) *api.Problem {
	var excess *ExcessError
	switch {
	case errors.As(err, &excess):
		p := api.NewProblem(http.StatusTooManyRequests, api.CodeRateLimited, "", "the key exceeds its %s limit; ask again after %d s",
			excess.Bound, seconds(excess))
		p.RetryAfter = seconds(excess)
		return p
	case errors.Is(err, ErrNoKey):
		return api.NewProblem(http.StatusUnauthorized, api.CodeUnauthorized, "Authorization",
			"a key is needed: Authorization: Bearer KEY, or X-API-Key: KEY; \"palimpsest keys create\" makes one")
	case errors.Is(err, ErrExpired):
		return api.NewProblem(http.StatusUnauthorized, api.CodeUnauthorized, "Authorization", "the key has expired")
	case errors.Is(err, ErrRevoked):
		return api.NewProblem(http.StatusUnauthorized, api.CodeUnauthorized, "Authorization", "the key is revoked")
	}
	return api.NewProblem(http.StatusUnauthorized, api.CodeUnauthorized, "Authorization", "the key is unknown")
}

func seconds(e *ExcessError) int { return max(1, int(math.Ceil(e.After.Seconds()))) }

// Refuse answers with a problem.
func Refuse(w http.ResponseWriter, p *api.Problem) {
	w.Header().Set("Content-Type", p.ContentType(""))
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="palimpsest"`)
	}
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // fails only if the client has gone
}
