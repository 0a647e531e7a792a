package deploy_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// metric is what the program exports, as docs/metrics.md lists it.
type metric struct {
	kind   string
	labels []string
}

// exported reads the reference, which a test of the program compares with the registered
// metrics.
func exported(t *testing.T) map[string]metric {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(palimpsest_[a-z_]+)` \\| ([a-z]+) \\| [^|]* \\| ([^|]*) \\|")
	all := map[string]metric{}
	for _, m := range row.FindAllStringSubmatch(string(read(t, "docs", "metrics.md")), -1) {
		found := metric{kind: m[2], labels: strings.Fields(strings.ReplaceAll(m[3], "`", ""))}
		if found.kind == "histogram" {
			found.labels = append(found.labels, "le")
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				all[m[1]+part] = found
			}
			continue
		}
		all[m[1]] = found
	}
	if len(all) < 15 {
		t.Fatalf("docs/metrics.md lists %d metrics", len(all))
	}
	return all
}

// added are labels that Prometheus adds to each series.
var added = []string{"namespace", "pod", "instance", "job", "container"}

var promql = parser.NewParser(parser.Options{})

// checkQuery parses a query and checks that each of its metrics and labels is
// exported.
func checkQuery(known map[string]metric, query string) error {
	expr, err := promql.ParseExpr(query)
	if err != nil {
		return err
	}
	var wrong error
	refuse := func(format string, args ...any) {
		if wrong == nil {
			wrong = fmt.Errorf(format, args...)
		}
	}
	labels := slices.Clone(added)
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok || v.Name == "process_resident_memory_bytes" {
			return nil
		}
		m, ok := known[v.Name]
		if !ok {
			refuse("%s is not exported", v.Name)
		}
		labels = append(labels, m.labels...)
		for _, matcher := range v.LabelMatchers {
			if matcher.Name != "__name__" && !slices.Contains(m.labels, matcher.Name) && !slices.Contains(added, matcher.Name) {
				refuse("%s has no label %s", v.Name, matcher.Name)
			}
		}
		return nil
	})
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			for _, l := range n.Grouping {
				if !slices.Contains(labels, l) {
					refuse("grouped by %s, which nothing has", l)
				}
			}
		case *parser.Call:
			if n.Func.Name != "rate" && n.Func.Name != "increase" {
				return nil
			}
			of := n.Args[0].(*parser.MatrixSelector).VectorSelector.(*parser.VectorSelector) //nolint:forcetypeassert // the parser saw to it
			if kind := known[of.Name].kind; kind != "counter" && kind != "histogram" {
				refuse("the %s of %s, a %s", n.Func.Name, of.Name, kind)
			}
		}
		return nil
	})
	return wrong
}

func TestQueriesAreChecked(t *testing.T) {
	t.Parallel()
	known := exported(t)
	for _, query := range []string{
		"sum(", "palimpsest_nothing", `palimpsest_dead_letters{user="nora"}`, "sum by (user) (palimpsest_dead_letters)",
		"rate(palimpsest_dead_letters[5m])", "palimpsest_handler_seconds",
	} {
		if checkQuery(known, query) == nil {
			t.Errorf("%s is let through", query)
		}
	}
}

func TestAlertsAskForWhatIsExported(t *testing.T) {
	t.Parallel()
	known := exported(t)
	var manifest struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := yaml.Unmarshal(read(t, "deploy", "observability", "alerts.yaml"), &manifest); err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(manifest.Spec, false, model.UTF8Validation, promql, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var about []string
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if err := checkQuery(known, rule.Expr); err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
			}
			about = append(about, rule.Alert)
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s does not say what is wrong, how bad it is and what to do", rule.Alert)
			}
		}
	}
	for _, want := range []string{"ConsumerLag", "DeadLetters", "DependencyDown", "Redeliveries", "LedgerUnbalanced", "DiskFull", "Holds"} {
		if !slices.Contains(about, "Palimpsest"+want) {
			t.Errorf("no alert Palimpsest%s", want)
		}
	}
}

// logs are what ordered readers read, by the name under which they tell what waits.
// Of those of ingest, each process tells its own.
var logs = []string{"ingest", "consolidator-projector", "consolidator-auditlog"}

// The metrics that replicas are scaled by are a consumer's of the topology, or a
// log's.
func TestScalersAskForWhatIsExported(t *testing.T) {
	t.Parallel()
	known, consumers := exported(t), []string{}
	for _, m := range regexp.MustCompile(`MSG\.NEXT\.[A-Z]+\.([a-z-]+)"`).FindAllSubmatch(read(t, "deploy", "nats", "permissions.conf"), -1) {
		consumers = append(consumers, string(m[1]))
	}
	for name, o := range of[scaledObject](prod(t)) {
		for _, trigger := range o.Spec.Triggers {
			query := trigger.Metadata.Query
			if err := checkQuery(known, query); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			m := regexp.MustCompile(`consumer=~"([^"]+)"`).FindStringSubmatch(query)
			if m == nil {
				t.Fatalf("%s asks for no consumer: %s", name, query)
			}
			scaled, service := regexp.MustCompile("^(?:"+m[1]+")$"), strings.TrimPrefix(name, "palimpsest-")
			found := slices.DeleteFunc(slices.Concat(logs, consumers), func(consumer string) bool { return !scaled.MatchString(consumer) })
			foreign := func(consumer string) bool { return consumer != service && !strings.HasPrefix(consumer, service+"-") }
			if len(found) == 0 || slices.ContainsFunc(found, foreign) {
				t.Errorf("%s is scaled by %s, which is %v", name, m[1], found)
			}
			if shared := strings.Contains(query, "max by (consumer)"); shared == (service == "ingest") {
				t.Errorf("%s is scaled by %s", name, query)
			}
		}
	}
}

func TestDashboardAsksForWhatIsExported(t *testing.T) {
	t.Parallel()
	known := exported(t)
	var board struct {
		Title, UID string
		Templating struct {
			List []struct{ Name string }
		}
		Panels []struct {
			ID          int
			Type, Title string
			Description string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(read(t, "deploy", "observability", "dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*")
	ids, used := map[int]bool{}, map[string]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %d %q: its id, place, description or queries are wrong", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			query := variables.Replace(target.Expr)
			if strings.Contains(query, "$") {
				t.Errorf("%q has a variable that the dashboard has not: %s", p.Title, target.Expr)
			}
			if err := checkQuery(known, query); err != nil {
				t.Errorf("%q: %v", p.Title, err)
			}
			used[regexp.MustCompile(`palimpsest_[a-z]+`).FindString(query)] = true
		}
	}
	if len(board.Templating.List) != 2 || len(used) < 10 {
		t.Errorf("%d variables, %d families of metrics", len(board.Templating.List), len(used))
	}
}
