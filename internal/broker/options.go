package broker

import (
	"fmt"
	"net"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// maxPayload is the largest message that the broker takes, in bytes. Ours
	// are bounded at 1 MiB; an episode between the two is refused with a letter.
	maxPayload = 8 << 20
	// maxControlLine fits a subject of four tokens of 768 bytes (256 bytes, each
	// of them escaped), a JetStream API prefix and a reply subject.
	maxControlLine = 16 << 10
	// maxMemory bounds what consumers without a name keep in memory.
	maxMemory = 64 << 20

	// maxStore is the server's own limit, which must never bind: it is fixed at
	// the start, and what streams reserve counts against it. Ours is the
	// account's, which follows the free space.
	maxStore = 1 << 60

	ownAccount    = "PALIMPSEST"
	publicAccount = "PUBLIC"
	publicUser    = "anonymous"
)

// serverOptions has two accounts. Streams and services live in the one; clients
// without a credential are in the other, which imports the publishing of
// episodes and nothing else. Permissions alone would not do: a reply subject is
// not checked against them, so a client could have the acknowledgement of its
// episode written to any subject, the journal's included.
func (e *Embedded) serverOptions(publicKey string) (*server.Options, error) {
	own, public := server.NewAccount(ownAccount), server.NewAccount(publicAccount)
	if err := shareEpisodes(own, public); err != nil {
		return nil, fmt.Errorf("share episodes: %w", err)
	}
	opts := &server.Options{
		ServerName:         "palimpsest",
		Host:               e.cfg.Host,
		Port:               int(e.port.Load()),
		DontListen:         true, // until the topology is applied
		NoSigs:             true,
		NoLog:              true,
		MaxPayload:         maxPayload,
		MaxControlLine:     maxControlLine,
		JetStream:          true,
		JetStreamMaxMemory: maxMemory,
		JetStreamMaxStore:  maxStore,
		StoreDir:           e.cfg.Dir,
		SyncAlways:         e.cfg.Sync == SyncAlways,
		SyncInterval:       syncInterval,
		Accounts:           []*server.Account{own, public},
		Nkeys:              []*server.NkeyUser{{Nkey: publicKey, Account: own}},
	}
	if loopback(e.cfg.Host) {
		opts.Users = []*server.User{{
			Username: publicUser,
			Account:  public,
			Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{episodesPublic}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			},
		}}
		opts.NoAuthUser = publicUser
	}
	return opts, nil
}

const episodesPublic = "palimpsest.episodes.>"

// shareEpisodes lets the public account publish episodes into our own. Replies
// come back through the import, into the public account only.
func shareEpisodes(own, public *server.Account) error {
	if err := own.AddServiceExport(episodesPublic, []*server.Account{public}); err != nil {
		return err
	}
	return public.AddServiceImport(own, episodesPublic, episodesPublic)
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
