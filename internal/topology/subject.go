package topology

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// covers reports whether every subject that matches b matches a.
func covers(a, b string) bool { return server.SubjectMatchesFilter(b, a) }

var (
	placeholder = regexp.MustCompile(`^\{\{\s*(?i:wildcard)\(.*\)\s*\}\}$|^\$\d+$`)
	partition   = regexp.MustCompile(`^\{\{\s*(?i:partition)\(\s*(\d+)\s*[,)].*\}\}$`)
)

// maxPartitions bounds what a hostile transform can make us expand.
const maxPartitions = 4096

// storedSubjects are the patterns of the subjects under which a stream's
// messages are stored: those that it listens on or, with a transform, the
// transformed ones, one for each partition.
func storedSubjects(cfg jetstream.StreamConfig) []string {
	if cfg.SubjectTransform == nil || cfg.SubjectTransform.Destination == "" {
		return cfg.Subjects
	}
	subjects := []string{""}
	for i, token := range strings.Split(cfg.SubjectTransform.Destination, ".") {
		values := []string{token}
		if placeholder.MatchString(token) {
			values = []string{"*"}
		} else if m := partition.FindStringSubmatch(token); m != nil {
			values = numbers(m[1])
		} else if strings.Contains(token, "{{") {
			values = []string{"*"}
		}
		if i > 0 {
			for j := range values {
				values[j] = "." + values[j]
			}
		}
		subjects = product(subjects, values)
	}
	return subjects
}

func numbers(text string) []string {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPartitions {
		return []string{"*"}
	}
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}

func product(heads, tails []string) []string {
	if len(heads)*len(tails) > maxPartitions {
		tails = []string{".*"}
	}
	all := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			all = append(all, h+t)
		}
	}
	return all
}
