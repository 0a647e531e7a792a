package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"palimpsest/internal/audit/clickhouse"
	"palimpsest/internal/broker"
	"palimpsest/internal/store"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/store/sqlite"
)

// checkLimit is how long a server has to answer a check.
const checkLimit = 5 * time.Second

// Check checks the configuration, and unless offline the servers that it names. It
// changes nothing anywhere.
func (inv *Invocation) Check(offline bool) (out Checked, err error) {
	cfg, _, err := inv.Configuration(nil)
	if err != nil {
		return out, err
	}
	if err := writable(cfg.Data); err != nil {
		return out, err
	}
	if _, err := cfg.Embedder.open(); err != nil {
		return out, err
	}
	out.OK = true
	if offline {
		return out, nil
	}
	if err := reachAll(inv.Context(), *cfg); err != nil {
		return out, err
	}
	return out, plain(*cfg, out.vectors(inv.Context(), *cfg))
}

// Checked is the answer of a check.
type Checked struct {
	OK bool `json:"ok"`
	// Vectors is the space that the memory store serves, VectorsBuilding the one under
	// construction, and VectorsPending how many texts that one lacks.
	Vectors         string `json:"vectors,omitempty"`
	VectorsBuilding string `json:"vectors_building,omitempty"`
	VectorsPending  uint64 `json:"vectors_building_pending,omitempty"`
}

// vectors reads the spaces of the memory store, if there is one.
func (c *Checked) vectors(ctx context.Context, cfg Config) error {
	var spaces store.Spaces
	switch {
	case cfg.Memory != backendFile:
		var err error
		if spaces, c.VectorsPending, err = redis.ReadSpaces(ctx, cfg.redis()); err != nil {
			return err
		}
	case absent(cfg.dataPath(memoryFile)):
		return nil
	default:
		file, err := sqlite.OpenReading(ctx, cfg.dataPath(memoryFile))
		if err != nil {
			return err
		}
		spaces = file.Spaces()
		stats, err := file.Stats(ctx)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		c.VectorsPending = stats.VectorsBuilding
	}
	if spaces.Served.Embedder.Name != "" {
		c.Vectors = spaces.Served.Embedder.String()
	}
	if spaces.Next != nil {
		c.VectorsBuilding = spaces.Next.Embedder.String()
	}
	return nil
}

// writable reports why a data directory cannot be used; one that does not exist
// yet is created when it is needed.
func writable(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return fmt.Errorf("data: %w", err)
	case !info.IsDir():
		return fmt.Errorf("data: %s is not a directory", dir)
	}
	f, err := os.CreateTemp(dir, ".check-*")
	if err != nil {
		return fmt.Errorf("data: %s is not writable: %w", dir, err)
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// server is one that the configuration names.
type server struct {
	key   string
	reach func(context.Context) error
}

func (c Config) servers() (all []server) {
	if c.NATS.URL != natsEmbedded {
		all = append(all, server{"nats.url", func(ctx context.Context) error {
			if err := broker.DialOne(ctx, c.NATS.URL); err != nil {
				return err
			}
			return broker.Reach(ctx, c.connection("palimpsest-check"))
		}})
	}
	if c.Memory != backendFile {
		all = append(all, server{"memory", func(ctx context.Context) error { return redis.Reach(ctx, c.redis()) }})
	}
	if c.Audit != backendFile {
		all = append(all, server{"audit", func(ctx context.Context) error { return clickhouse.Reach(ctx, c.clickHouse()) }})
	}
	return all
}

// reachAll names each server that cannot be used, with the origin of its setting.
func reachAll(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	servers := cfg.servers()
	errs := make([]error, len(servers))
	var asked sync.WaitGroup
	for i, s := range servers {
		asked.Go(func() {
			if err := s.reach(ctx); err != nil {
				errs[i] = cfg.engineError(&engineError{s.key, err})
			}
		})
	}
	asked.Wait()
	return errors.Join(errs...)
}
