package redis

import (
	"context"
	"errors"
	"net/url"

	goredis "github.com/redis/go-redis/v9"
)

// greeting is the first that a new connection carries.
type greeting func(ctx context.Context, cn *goredis.Conn) error

// connect takes the replies of protocol 3: only they tell of a search that was
// cut short.
func connect(address string, greet greeting) (goredis.UniversalClient, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("redis: url cannot be parsed") // its own error shows the password
	}
	if u.Query().Has("addr") {
		opts, err := goredis.ParseClusterURL(address)
		if err != nil {
			return nil, errors.New("redis: url of a cluster cannot be parsed")
		}
		opts.Protocol, opts.ContextTimeoutEnabled, opts.OnConnect = 3, true, greet
		return goredis.NewClusterClient(opts), nil
	}
	opts, err := goredis.ParseURL(address)
	if err != nil {
		return nil, errors.New("redis: url cannot be parsed")
	}
	opts.Protocol, opts.ContextTimeoutEnabled, opts.OnConnect = 3, true, greet
	return goredis.NewClient(opts), nil
}
