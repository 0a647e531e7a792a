package app

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// step is a service with the payloads that it reads and makes.
type step struct {
	service   string
	in, makes []string
}

// pipelineOrder is the pipeline, in the order in which data meets it.
var pipelineOrder = []step{
	{"query", nil, []string{"CommandRequested", "EpisodeRecorded", "EpisodeStored", "FactReturned", "SessionEnded", "TickIssued"}},
	{"ingest", []string{"EpisodeRecorded", "SessionEnded"}, []string{"EpisodeStored"}},
	{"scheduler", []string{"EffectCommitted", "EpisodeStored", "UserErased"}, []string{"CommandRequested", "SessionEnded", "TickIssued"}},
	{"extractor", []string{"TickIssued"}, []string{"CandidatesExtracted", "MessageBuried"}},
	{"decider", []string{"CandidatesExtracted", "CommandRequested"}, []string{"DeltasDecided", "MessageBuried"}},
	{"consolidator", []string{"DeltasDecided", "EffectCommitted", "FactReturned"}, []string{"CandidatesExtracted", "OutcomeAnnounced"}},
}

// back lists what runs up the line, and why.
var back = map[string]string{
	"scheduler SessionEnded":           "an end takes its place in what was said",
	"consolidator CandidatesExtracted": "a batch whose basis went stale is decided again",
	"consolidator CommandRequested":    "a command whose basis went stale is decided again",
}

// ends lists what no service reads.
var ends = []string{"OutcomeAnnounced", "MessageBuried"}

func TestStagesFormOneLine(t *testing.T) {
	t.Parallel()
	for at, s := range pipelineOrder {
		read, made := payloadsOf(t, s.service)
		if diff := cmp.Diff(s.in, read); diff != "" {
			t.Errorf("%s reads: %s", s.service, diff)
		}
		for _, name := range made {
			if !slices.Contains(s.makes, name) && back[s.service+" "+name] == "" {
				t.Errorf("%s makes %s, which is not its to make", s.service, name)
			}
		}
		for _, name := range s.makes {
			if !slices.Contains(made, name) {
				t.Errorf("%s no longer makes %s", s.service, name)
			}
			if slices.Contains(ends, name) || back[s.service+" "+name] != "" {
				continue
			}
			if !slices.ContainsFunc(pipelineOrder[at+1:], func(later step) bool { return slices.Contains(later.in, name) }) {
				t.Errorf("%s makes %s, which nobody after it reads", s.service, name)
			}
		}
	}
}

// payloadsOf reads a service's source: the payload types of the events that its
// handlers take or decode, and those that it makes values of.
func payloadsOf(t *testing.T, service string) (read, made []string) {
	t.Helper()
	dir := filepath.Join("..", "..", "services", service)
	in, out := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && isHandler(n.Type) {
					in[handled(n.Type)] = true
				}
			case *ast.IndexExpr: // pipeline.DecodeEntry[events.X]
				if f, ok := n.X.(*ast.SelectorExpr); ok && f.Sel.Name == "DecodeEntry" && payload(n.Index) != "" {
					in[payload(n.Index)] = true
				}
			case *ast.CompositeLit:
				if name := payload(n.Type); name != "" && len(n.Elts) > 0 {
					out[name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(in)), slices.Sorted(maps.Keys(out))
}

// isHandler reports whether a function has the shape of a pipeline.Handler or a
// pipeline.RunHandler.
func isHandler(f *ast.FuncType) bool {
	params := f.Params.List
	if len(params) != 2 || f.Results == nil || handled(f) == "" {
		return false
	}
	if isContext := params[0].Type.(*ast.SelectorExpr); isContext.Sel.Name != "Context" {
		return false
	}
	results := f.Results.List
	if _, batch := params[1].Type.(*ast.ArrayType); batch && len(results) == 1 {
		return true
	}
	list, ok := results[0].Type.(*ast.ArrayType)
	return ok && len(results) == 2 && selected(list.Elt) == "Payload"
}

// handled is the X of an argument of type events.Event[events.X], or of a list
// of them; of a type that stands for it, the empty string.
func handled(f *ast.FuncType) string {
	if len(f.Params.List) != 2 {
		return ""
	}
	if _, ok := f.Params.List[0].Type.(*ast.SelectorExpr); !ok {
		return ""
	}
	of := f.Params.List[1].Type
	if list, ok := of.(*ast.ArrayType); ok {
		of = list.Elt
	}
	index, ok := of.(*ast.IndexExpr)
	if !ok || selected(index.X) != "Event" {
		return ""
	}
	if name := payload(index.Index); name != "" {
		return name
	}
	if id, ok := index.Index.(*ast.Ident); ok && id.Name == "commit" {
		return "EffectCommitted" // the scheduler's slim view of it
	}
	return ""
}

var payloadNames = []string{
	"EpisodeRecorded", "SessionEnded", "EpisodeStored", "TickIssued", "CandidatesExtracted", "CommandRequested",
	"DeltasDecided", "EffectCommitted", "UserErased", "OutcomeAnnounced", "FactReturned", "MessageBuried",
}

func payload(e ast.Expr) string {
	if name := selected(e); slices.Contains(payloadNames, name) {
		return name
	}
	return ""
}

// selected is the name X of events.X.
func selected(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if pkg, ok := s.X.(*ast.Ident); !ok || pkg.Name != "events" {
		return ""
	}
	return s.Sel.Name
}
