package redis

import (
	"context"
	"strings"
)

// checkServer tells of settings under which the server forgets.
func (s *Store) checkServer(ctx context.Context) {
	reply, err := s.call(ctx, "INFO", "everything")
	if err != nil {
		return // opening goes on and meets the same
	}
	info := parseInfo(text(reply))
	for _, warning := range serverWarnings(info) {
		s.cfg.Logger.Warn(warning, "server", info["redis_version"])
	}
}

// parseInfo reads what INFO tells.
func parseInfo(text string) fields {
	info := fields{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func serverWarnings(info fields) (list []string) {
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		list = append(list, "redis evicts memories when memory is short: set maxmemory-policy to noeviction, it is "+policy)
	}
	if info["aof_enabled"] == "0" {
		list = append(list, "redis keeps no append-only file: a restart loses what came after its last snapshot; set appendonly to yes")
	}
	return list
}
