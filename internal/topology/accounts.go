package topology

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// publisher is the login that publishes the episodes of one project.
type publisher struct {
	project string
	// token is the project in subjects, name what the account, the user and the
	// variable of the password end in.
	token, name string
}

// publishers returns the logins for projects. Two projects may not share a name.
func publishers(projects []string) ([]publisher, error) {
	var all []publisher
	taken := map[string]string{}
	for _, project := range projects {
		if err := (scope.Selector{Project: project}).Validate(); err != nil {
			return nil, fmt.Errorf("publisher: %w", err)
		}
		name := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, strings.ToLower(project))
		if other, ok := taken[name]; ok {
			return nil, fmt.Errorf("publisher: %q and %q have the same name %s in the configuration", other, project, name)
		}
		taken[name] = project
		token, _, _ := strings.Cut(scope.Scope{Project: project, User: "-"}.Tokens(), ".")
		all = append(all, publisher{project, token, name})
	}
	return all, nil
}

func (p publisher) account() string { return "PUBLISHER_" + strings.ToUpper(p.name) }

// episodes and letters are the subjects of what a publisher sends, and of what
// ingest refuses of it.
func (p publisher) episodes() string {
	return fmt.Sprintf("palimpsest.%s.%s.>", events.NounEpisodes, p.token)
}

func (p publisher) letters() string {
	return fmt.Sprintf("palimpsest.%s.ingest.%s.>", events.NounDeadLetter, p.token)
}

// AccountsText is the accounts of a NATS server: one with the streams and the
// services, one with a publisher of all projects, and one for the publisher of each
// of projects. A publisher has an account of its own because permissions do not
// cover reply subjects: without it, a publisher could have an acknowledgement sent
// to any subject of the services, or read those of other publishers.
func (d Declaration) AccountsText(projects ...string) (string, error) {
	own, err := publishers(projects)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(accountsHead)
	for _, s := range slices.SortedFunc(maps.Keys(arrows), func(x, y string) int { return slices.Index(serviceOrder, x) - slices.Index(serviceOrder, y) }) {
		_, _ = fmt.Fprintf(&b, "      { user: %s, password: $NATS_PASSWORD_%s, permissions: $%s }\n", s, strings.ToUpper(s), s)
	}
	b.WriteString(accountsOperator)
	names := []string{"PUBLIC"}
	for _, p := range own {
		names = append(names, p.account())
	}
	_, _ = fmt.Fprintf(&b, "    exports: [\n      { service: \"palimpsest.episodes.>\", accounts: [%s] }\n", strings.Join(names, ", "))
	for _, p := range own {
		_, _ = fmt.Fprintf(&b, "      { stream: %q, accounts: [%s] }\n", p.letters(), p.account())
	}
	b.WriteString("    ]\n  }\n")
	b.WriteString(accountsPublic)
	for _, p := range own {
		_, _ = fmt.Fprintf(&b, publisherAccount, p.project, p.account(), p.name, strings.ToUpper(p.name), p.episodes(), p.letters())
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// WriteServer writes what a NATS server includes into a directory: accounts.conf, with a
// publisher for each of projects, and permissions.conf. They hold no password. A server
// that runs takes them at its next reload.
func (d Declaration) WriteServer(dir string, projects ...string) error {
	accounts, err := d.AccountsText(projects...)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the server may run as another user
		return fmt.Errorf("write accounts: %w", err)
	}
	for name, text := range map[string]string{"accounts.conf": accounts, "permissions.conf": ServerText(d.ServicePermissions())} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("write accounts: %w", err)
		}
	}
	return nil
}

// serviceOrder is that of the data flow.
var serviceOrder = []string{"ingest", "scheduler", "extractor", "decider", "consolidator", "query"}

const accountsHead = `# Who may do what on the broker. Services and streams live in one account;
# publishers are in others, which can publish episodes and see their
# acknowledgements, and nothing else. ` + "`palimpsest topology accounts`" + ` prints it;
# --publisher PROJECT adds the account of a publisher of one project.
#
# Passwords come from the environment of the server. Where it has NKeys, write
# nkey: "U…" in place of user and password, and give each service its seed
# (nats.nkey_seed).
include "permissions.conf"

accounts {
  PALIMPSEST {
    jetstream: enabled
    users: [
`

const accountsOperator = `      # Applies the topology and makes API keys, and nothing in between: it may do
      # everything.
      { user: operator, password: $NATS_PASSWORD_OPERATOR }
    ]
`

const accountsPublic = `  # Publishes for all projects. Leave it out where each project has a publisher.
  PUBLIC {
    users: [
      {
        user: publisher, password: $NATS_PASSWORD_PUBLISHER
        permissions { publish: "palimpsest.episodes.>", subscribe: "_INBOX.>" }
      }
    ]
    imports: [ { service: { account: PALIMPSEST, subject: "palimpsest.episodes.>" } } ]
  }
`

const publisherAccount = `  # Publishes for the project %[1]q, and hears what ingest refuses of it.
  %[2]s {
    users: [
      {
        user: publisher_%[3]s, password: $NATS_PASSWORD_PUBLISHER_%[4]s
        permissions { publish: %[5]q, subscribe: [ "_INBOX.>", %[6]q ] }
      }
    ]
    imports: [
      { service: { account: PALIMPSEST, subject: %[5]q } }
      { stream: { account: PALIMPSEST, subject: %[6]q } }
    ]
  }
`
