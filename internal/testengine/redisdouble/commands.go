package redisdouble

import (
	"fmt"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// command is one that miniredis answers.
type command struct {
	// writes says which of the arguments are keys that it writes; nil for none.
	writes func(args []string) []string
	// only are the first arguments that are known; nil for any.
	only []string
}

func (c command) written(args []string) []string {
	if c.writes == nil {
		return nil
	}
	return c.writes(args)
}

// refuse says what of the arguments is not known; "" for nothing.
func (c command) refuse(args []string) string {
	if c.only != nil && len(args) > 0 && !slices.Contains(c.only, strings.ToUpper(args[0])) {
		return "this form"
	}
	return ""
}

func first(args []string) []string { return args[:min(1, len(args))] }
func every(args []string) []string { return args }

// commands are those that miniredis may answer, because the adapter, its driver
// or its tests send them and its answers were compared with the real server's.
var commands = map[string]command{
	"AUTH": {}, "HELLO": {}, "PING": {}, "QUIT": {}, "TIME": {},
	"SELECT": {only: []string{"0"}},
	"MULTI":  {}, "EXEC": {}, "DISCARD": {},
	"EVAL": {}, "EVALSHA": {}, "SCRIPT": {only: []string{"LOAD", "EXISTS"}},

	"DEL": {writes: every}, "UNLINK": {writes: every}, "EXISTS": {}, "TYPE": {}, "SCAN": {},
	"PEXPIRE": {writes: first}, "PEXPIREAT": {writes: first},
	"GET": {}, "SET": {writes: first}, "INCR": {writes: first},
	"HGET": {}, "HMGET": {}, "HGETALL": {}, "HSET": {writes: first}, "HSETNX": {writes: first}, "HDEL": {writes: first}, "HINCRBY": {writes: first},
	"HEXPIRE": {},
	"SADD":    {}, "SREM": {}, "SMEMBERS": {},
	"ZADD": {}, "ZCOUNT": {}, "ZRANGE": {}, "ZREM": {}, "ZREMRANGEBYLEX": {},
	"RPUSH": {}, "LRANGE": {},
}

// ownCommand answers what miniredis does not know, or not well enough.
type ownCommand func(args []string) (any, error)

// own finds the double's own command of a name; nil for none.
func (s *Server) own(name string) ownCommand {
	switch name {
	case "INFO":
		return s.info
	case "CONFIG":
		return s.config
	case "BGSAVE": // with SCHEDULE it waits for one that is under way
		return func([]string) (any, error) { return "Background saving started", nil }
	case "BGREWRITEAOF":
		return func([]string) (any, error) { return "Background append only file rewriting started", nil }
	case "PEXPIRETIME":
		return s.expireTime
	case "CLIENT":
		return func([]string) (any, error) { return "OK", nil }
	case "FT.CREATE":
		return s.engine.create
	case "FT.ALTER":
		return s.engine.alter
	case "FT.DROPINDEX":
		return s.engine.drop
	case "FT.INFO":
		return s.engine.info
	case "FT._LIST":
		return s.engine.list
	case "FT.ALIASADD":
		return s.engine.aliasAdd
	case "FT.ALIASUPDATE":
		return s.engine.aliasUpdate
	case "FT.ALIASDEL":
		return s.engine.aliasDelete
	case "FT.SEARCH":
		return s.engine.search
	case "FT.AGGREGATE":
		return s.engine.aggregate
	}
	return nil
}

// answer writes the reply of an own command.
func (s *Server) answer(c *server.Peer, cl *client, name string, own ownCommand, args []string) {
	var reply any
	var err error
	switch {
	case cl.queueing:
		cl.refused = true
		err = fmt.Errorf("REDISDOUBLE %s is not in the double between MULTI and EXEC", name)
	case strings.HasPrefix(name, "FT.") && !c.Resp3:
		err = fmt.Errorf("REDISDOUBLE %s is not in the double but for protocol 3", name)
	default:
		reply, err = own(args)
	}
	c.Block(func(w *server.Writer) {
		if err != nil {
			w.WriteError(err.Error())
			return
		}
		write(w, reply)
	})
}

// info returns the fields of the real server's INFO that clients here read.
func (s *Server) info(args []string) (any, error) {
	used := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(used)
	sections := []struct{ name, text string }{
		{"Server", fmt.Sprintf("redis_version:8.0.2\r\nredis_mode:standalone\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\n",
			s.run, int(time.Since(s.begun).Seconds()))},
		{"Memory", fmt.Sprintf("used_memory:%d\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n", used[0].Value.Uint64())},
		{"Persistence", "loading:0\r\nrdb_bgsave_in_progress:0\r\nrdb_last_bgsave_status:ok\r\naof_enabled:1\r\n" +
			"aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_bgrewrite_status:ok\r\n"},
		{"Replication", "role:master\r\n"},
	}
	var out strings.Builder
	for _, section := range sections {
		if len(args) == 0 || slices.ContainsFunc(args, func(a string) bool {
			return slices.Contains([]string{"all", "everything", "default", strings.ToLower(section.name)}, strings.ToLower(a))
		}) {
			out.WriteString("# " + section.name + "\r\n" + section.text)
		}
	}
	return out.String(), nil
}

// expireTime is PEXPIRETIME.
func (s *Server) expireTime(args []string) (any, error) {
	if len(args) != 1 {
		return nil, errArguments("pexpiretime")
	}
	at, ok := s.expiring[args[0]]
	switch {
	case ok:
		return int(at.UnixMilli()), nil
	case s.redis.Exists(args[0]):
		return -1, nil
	}
	return -2, nil
}

// settings are what CONFIG GET knows.
var settings = map[string]string{"maxmemory-policy": "noeviction", "maxmemory": "0", "appendonly": "yes", "appendfsync": "everysec", "save": ""}

func (s *Server) config(args []string) (any, error) {
	if len(args) < 2 || !strings.EqualFold(args[0], "GET") {
		return nil, errUnknown("CONFIG", args)
	}
	var reply pairs
	for _, name := range args[1:] {
		value, ok := settings[strings.ToLower(name)]
		if !ok {
			return nil, errUnknown("CONFIG", args)
		}
		reply = append(reply, name, value)
	}
	return reply, nil
}

// errUnknown refuses what the real server may know and the double does not.
func errUnknown(what string, args []string) error {
	return fmt.Errorf("REDISDOUBLE not in the double: %s %q", what, args)
}
