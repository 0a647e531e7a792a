package broker

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/topology"
)

// TestRequestsEnd asks for everything with a limit that has passed before there
// is an answer, under a context that would wait for minutes.
func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b, err := StartEmbedded(EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	whole, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	const limited = limit(time.Nanosecond)
	js := &boundedAPI{whole, limited}
	stream, err := limited.stream(whole.Stream(ctx, topology.StreamAudit))
	if err != nil {
		t.Fatal(err)
	}
	const filter, name = "palimpsest.audit.>", "reader"
	consumer, err := limited.consumer(whole.CreateConsumer(ctx, topology.StreamAudit, jetstream.ConsumerConfig{Name: name, AckPolicy: jetstream.AckNonePolicy}))
	if err != nil {
		t.Fatal(err)
	}
	config := jetstream.ConsumerConfig{Name: name}
	asked := map[string]func() error{
		"Publish":                func() error { _, err := js.Publish(ctx, "palimpsest.audit.x", nil); return err },
		"PublishMsg":             func() error { _, err := js.PublishMsg(ctx, nats.NewMsg("palimpsest.audit.x")); return err },
		"CreateStream":           func() error { _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "X"}); return err },
		"CreateOrUpdateStream":   func() error { _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "X"}); return err },
		"Stream":                 func() error { _, err := js.Stream(ctx, topology.StreamAudit); return err },
		"DeleteStream":           func() error { return js.DeleteStream(ctx, "X") },
		"CreateConsumer":         func() error { _, err := js.CreateConsumer(ctx, topology.StreamAudit, config); return err },
		"CreateOrUpdateConsumer": func() error { _, err := js.CreateOrUpdateConsumer(ctx, topology.StreamAudit, config); return err },
		"Consumer":               func() error { _, err := js.Consumer(ctx, topology.StreamAudit, name); return err },
		"DeleteConsumer":         func() error { return js.DeleteConsumer(ctx, topology.StreamAudit, name) },
		"ListStreams": func() error {
			list := js.ListStreams(ctx)
			for range list.Info() {
			}
			return list.Err()
		},
		"StreamNames": func() error {
			list := js.StreamNames(ctx)
			for range list.Name() {
			}
			return list.Err()
		},
		"stream Info":                 func() error { _, err := stream.Info(ctx); return err },
		"stream Purge":                func() error { return stream.Purge(ctx) },
		"stream GetMsg":               func() error { _, err := stream.GetMsg(ctx, 1); return err },
		"stream GetLastMsgForSubject": func() error { _, err := stream.GetLastMsgForSubject(ctx, filter); return err },
		"stream SecureDeleteMsg":      func() error { return stream.SecureDeleteMsg(ctx, 1) },
		"stream Consumer":             func() error { _, err := stream.Consumer(ctx, name); return err },
		"stream DeleteConsumer":       func() error { return stream.DeleteConsumer(ctx, name) },
		"stream ListConsumers": func() error {
			list := stream.ListConsumers(ctx)
			for range list.Info() {
			}
			return list.Err()
		},
		"stream ConsumerNames": func() error {
			list := stream.ConsumerNames(ctx)
			for range list.Name() {
			}
			return list.Err()
		},
		"consumer Info": func() error { _, err := consumer.Info(ctx); return err },
	}
	for what, ask := range asked {
		if err := ask(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want %v", what, err, context.DeadlineExceeded)
		}
	}
	// Each bounded method is asked above.
	for _, of := range boundedMethods(t) {
		what := strings.TrimPrefix(strings.ToLower(strings.TrimPrefix(of.receiver, "bounded"))+" "+of.name, "api ")
		if asked[what] == nil {
			t.Errorf("%s is bounded and not tried", what)
		}
	}
}

// TestOnlyBoundedCalls walks the program: a request to JetStream goes through
// [NewJetStream] to a method that bounds it, and a round trip on the bare
// connection is made where a limit is set beside it.
func TestOnlyBoundedCalls(t *testing.T) {
	t.Parallel()
	bounded := map[string]bool{}
	for _, of := range boundedMethods(t) {
		bounded[of.name] = true
	}
	unbounded := map[string]bool{}
	for _, of := range []reflect.Type{
		reflect.TypeFor[jetstream.JetStream](), reflect.TypeFor[jetstream.Stream](),
		reflect.TypeFor[jetstream.Consumer](), reflect.TypeFor[jetstream.Msg](),
	} {
		for i := range of.NumMethod() {
			if m := of.Method(i); m.Type.NumIn() > 0 && m.Type.In(0) == reflect.TypeFor[context.Context]() && !bounded[m.Name] {
				unbounded[m.Name] = true
			}
		}
	}
	for _, name := range []string{"Request", "RequestMsg", "RequestWithContext", "RequestMsgWithContext", "Flush", "FlushWithContext"} {
		unbounded[name] = true
	}
	// These set a limit of their own.
	allowed := []string{
		"internal/broker/bounded.go: New", "internal/broker/connect.go: FlushWithContext",
		"internal/pipeline/keeper.go: DoubleAck", "internal/pipeline/listener.go: FlushWithContext",
	}
	found := map[string]bool{}
	walk(t, func(path string, file *ast.File) {
		if !speaksToBroker(file) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, _ := f.X.(*ast.Ident)
			if made := of != nil && of.Name == "jetstream" && strings.HasPrefix(f.Sel.Name, "New"); !made && !unbounded[f.Sel.Name] {
				return true
			}
			what := path + ": " + f.Sel.Name
			found[what] = true
			if !slices.Contains(allowed, what) {
				t.Errorf("%s: is not bounded", what)
			}
			return true
		})
	})
	for _, what := range allowed {
		if !found[what] {
			t.Errorf("%s: is allowed and not called", what)
		}
	}
}

// speaksToBroker reports whether a file has the means to ask the broker.
func speaksToBroker(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return strings.Contains(i.Path.Value, "nats-io/nats.go") })
}

// walk parses the program, without its tests, the bench of the bare engines and
// the examples.
func walk(t *testing.T, look func(path string, file *ast.File)) {
	t.Helper()
	root, files := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(entry.Name(), ".") || strings.HasSuffix(name, "test") || name == "internal/bench" || name == "examples" || name == "deploy" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			files++
			look(name, file)
		}
		return err
	})
	if err != nil || files < 300 {
		t.Fatalf("%d files read, %v", files, err)
	}
}

// method is one declared by bounded.go.
type method struct{ receiver, name string }

func boundedMethods(t *testing.T) (found []method) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "bounded.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		if pointer, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok {
			found = append(found, method{pointer.X.(*ast.Ident).Name, f.Name.Name}) //nolint:forcetypeassert // no receiver is generic
		}
	}
	return found
}
