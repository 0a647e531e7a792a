package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/audit"
)

// defaultDatabase is used where the DSN names none.
const defaultDatabase = "palimpsest"

// Config of the log.
type Config struct {
	// DSN names the servers, the user and the database, which is created where it
	// is missing and the user may: clickhouse://user:password@host:9000/palimpsest
	// over the native protocol, http:// or https:// over HTTP. With ?secure=true
	// the connection is encrypted. Further parameters are those of clickhouse-go.
	DSN string `yaml:"-"`
	// Cluster is one of those that the servers list in system.clusters, all of them
	// replicas of one shard: each keeps a copy of the log. Empty means one server.
	Cluster string
	// Retention is how long records are kept after they were applied, in whole
	// seconds; 0 keeps them for ever. Effects, which a rebuild needs, are kept.
	Retention time.Duration
	// Told is how long records are kept that reports count by their reason, where that
	// is shorter.
	Told audit.Retention `yaml:"-"`
}

// databaseName is what may stand in a statement as it is, clusterName between
// quotes.
var (
	databaseName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	clusterName  = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,128}$`)
)

// Validate refuses values that cannot work, by name. It does not tell of the
// DSN's credentials.
func (c Config) Validate() error {
	_, err := c.options()
	return err
}

func (c Config) options() (*clickhouse.Options, error) {
	switch {
	case c.DSN == "":
		return nil, errors.New("audit clickhouse: dsn is required")
	case c.Retention < 0 || c.Retention%time.Second != 0:
		return nil, fmt.Errorf("audit clickhouse: retention %s is not a whole number of seconds", c.Retention)
	case c.Told.Validate() != nil:
		return nil, fmt.Errorf("audit clickhouse: retention: %w", c.Told.Validate())
	case !clusterName.MatchString(c.Cluster):
		return nil, fmt.Errorf("audit clickhouse: cluster %q holds more than letters, digits, _, . and -", c.Cluster)
	}
	u, err := url.Parse(c.DSN)
	if err != nil {
		return nil, errors.New("audit clickhouse: dsn is not a URL")
	}
	switch u.Scheme {
	case "clickhouse", "http", "https":
	default:
		return nil, fmt.Errorf("audit clickhouse: dsn: scheme %q is not one of clickhouse, http, https", u.Scheme)
	}
	opt, err := clickhouse.ParseDSN(c.DSN)
	if err != nil {
		return nil, fmt.Errorf("audit clickhouse: dsn: %w", err)
	}
	if opt.Auth.Database == "" {
		opt.Auth.Database = defaultDatabase
	}
	if !databaseName.MatchString(opt.Auth.Database) {
		return nil, fmt.Errorf("audit clickhouse: dsn: database %q holds more than letters, digits and _", opt.Auth.Database)
	}
	opt.DialTimeout = cmp.Or(opt.DialTimeout, dialLimit)
	if opt.Compression == nil {
		opt.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	}
	return opt, nil
}

// Log is the audit log in one ClickHouse database, which any number of logs may
// share. It is safe for concurrent use. While the server is away its calls
// return errors; once it is back they work again.
type Log struct {
	conn  brief
	long  driver.Conn // the same, for requests that have no limit of their own
	place place

	mu     sync.RWMutex // held for reading by every call, so that Close waits
	closed bool
}

var _ audit.Log = (*Log)(nil)

// Open connects to the log, creating and migrating it where needed. It returns
// [audit.ErrNewer] for a schema of a later version, and [audit.ErrLocked] if
// another process does not finish its migration.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	opt, err := cfg.options()
	if err != nil {
		return nil, err
	}
	to := place{cluster: cfg.Cluster}
	if err := ensureDatabase(ctx, *opt, to); err != nil {
		return nil, fmt.Errorf("audit clickhouse: create database %s: %w", opt.Auth.Database, plain(err))
	}
	conn, err := clickhouse.Open(opt)
	if err != nil {
		return nil, fmt.Errorf("audit clickhouse: open: %w", plain(err))
	}
	err = reopen(ctx, conn, to)
	if err == nil {
		err = migrate(ctx, conn, to, lockLife)
	}
	if err == nil {
		err = to.fits(ctx, conn)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("audit clickhouse: migrate %s: %w", opt.Auth.Database, plain(err)), conn.Close())
	}
	if err := retain(ctx, conn, to, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("audit clickhouse: set retention: %w", plain(err)), conn.Close())
	}
	return &Log{conn: brief{conn}, long: conn, place: to}, nil
}

// Reach returns nil if the server answers and lets us in. It changes nothing there,
// and the database may be missing yet.
func Reach(ctx context.Context, cfg Config) (err error) {
	opt, err := cfg.options()
	if err != nil {
		return err
	}
	opt.Auth.Database = ""
	conn, err := clickhouse.Open(opt)
	if err != nil {
		return plain(err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return plain(conn.Ping(ctx))
}

// ensureDatabase creates the database unless it exists: an account without the
// right to create databases may use an existing one. The connection names no
// database, because a server refuses the name of a missing one.
func ensureDatabase(ctx context.Context, opt clickhouse.Options, to place) (err error) {
	name := opt.Auth.Database
	opt.Auth.Database = ""
	conn, err := clickhouse.Open(&opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := to.check(ctx, conn); err != nil {
		return err
	}
	var n uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM system.databases WHERE name = {name:String}", clickhouse.Named("name", name)).Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		return nil
	}
	return to.exec(ctx, conn, "CREATE DATABASE IF NOT EXISTS "+name+"{everywhere}") // databaseName matched
}

// plain leaves out the URL of a request that failed: it holds what was asked.
func plain(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}

// enter refuses calls on a closed log; the caller must leave.
func (l *Log) enter() error {
	l.mu.RLock()
	if l.closed {
		l.mu.RUnlock()
		return audit.ErrClosed
	}
	return nil
}

func (l *Log) leave() { l.mu.RUnlock() }

// Ping implements [audit.Log]: it writes no rows, which the server refuses where
// it would refuse some.
func (l *Log) Ping(ctx context.Context) error {
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	for _, table := range []string{"audit", "effects"} {
		if err := l.conn.Exec(ctx, "INSERT INTO "+table+" SELECT * FROM "+table+" WHERE 0"); err != nil {
			return fmt.Errorf("audit clickhouse: ping: %w", plain(err))
		}
	}
	if err := l.place.writable(ctx, l.conn); err != nil {
		return fmt.Errorf("audit clickhouse: ping: %w", plain(err))
	}
	return nil
}

// Close waits for calls under way and disconnects.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return audit.ErrClosed
	}
	l.closed = true
	return l.long.Close()
}
