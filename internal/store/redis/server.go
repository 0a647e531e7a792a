package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// checkServer tells of settings under which the server forgets, and of a version
// that is too old.
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
	if policy := info["search_timeout_policy"]; policy != "" && policy != "fail" {
		list = append(list, "redis answers a search that runs out of time with what it has so far, which is an error here: "+
			"set search-on-timeout to fail, it is "+policy)
	}
	if version := info["search_version"]; version != "" && older(version, oldestSearch) {
		list = append(list, "redis has RediSearch "+version+", and 2.10 is the oldest that this is made for")
	}
	return list
}

var oldestSearch = [2]int{2, 10}

// older compares the first two numbers of a version; one that cannot be read is not older.
func older(version string, than [2]int) bool {
	var have [2]int
	_, err := fmt.Sscanf(version, "%d.%d", &have[0], &have[1])
	return err == nil && slices.Compare(have[:], than[:]) < 0
}
