package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"palimpsest/pkg/api"
)

// withoutPages keeps web pages out. A browser sends what a page asks it to send
// to any address that its user can reach, loopback included: a form of another
// site would write, and a name that its owner points at 127.0.0.1 later on would
// read. Programs say neither where they come from nor a stranger's name. The trusted
// origins are let in.
func withoutPages(next http.Handler, trusted []string, names func(host string) bool) http.Handler {
	origins := http.NewCrossOriginProtection()
	for _, origin := range trusted {
		_ = origins.AddTrustedOrigin(origin) // Validate has read it
	}
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, api.NewProblem(http.StatusForbidden, api.CodeForbidden, "Origin", "a web page of %q may not call this server", r.Header.Get("Origin")))
	}))
	next = origins.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !names(r.Host) {
			refuse(w, api.NewProblem(http.StatusForbidden, api.CodeForbidden, "Host",
				"%q is not a name of this server; http.hosts lists those it has besides localhost and addresses", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// named returns a function that reports whether a Host names this server. A server
// that other hosts can reach may have further names, which only its configuration
// lists.
func (c Config) named(at net.Addr) func(host string) bool {
	listens, err := netip.ParseAddrPort(at.String())
	if len(c.Hosts) == 0 && (err != nil || !listens.Addr().Unmap().IsLoopback()) {
		return func(string) bool { return true }
	}
	return func(host string) bool {
		name := strings.ToLower(host)
		if without, _, err := net.SplitHostPort(name); err == nil {
			name = without
		}
		name = strings.TrimSuffix(strings.Trim(name, "[]"), ".")
		if name == "" || name == "localhost" || slices.Contains(c.Hosts, name) {
			return true
		}
		_, err := netip.ParseAddr(name) // DNS cannot point an address elsewhere
		return err == nil
	}
}
