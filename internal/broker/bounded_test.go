package broker

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
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
// is an answer, under a context without a deadline.
func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, err := StartEmbedded(EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	js, err := NewJetStream(b.Conn(), jetstream.WithDefaultTimeout(time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	long, cancel := context.WithTimeout(ctx, RequestLimit)
	defer cancel()
	stream, err := js.Stream(long, topology.StreamAudit)
	if err != nil {
		t.Fatal(err)
	}
	const filter, name = "palimpsest.audit.>", "reader"
	consumer, err := js.CreateConsumer(long, topology.StreamAudit, jetstream.ConsumerConfig{Name: name, AckPolicy: jetstream.AckNonePolicy})
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
		"Info":                  func() error { _, err := stream.Info(ctx); return err },
		"Purge":                 func() error { return stream.Purge(ctx) },
		"GetMsg":                func() error { _, err := stream.GetMsg(ctx, 1); return err },
		"GetLastMsgForSubject":  func() error { _, err := stream.GetLastMsgForSubject(ctx, filter); return err },
		"SecureDeleteMsg":       func() error { return stream.SecureDeleteMsg(ctx, 1) },
		"Stream.Consumer":       func() error { _, err := stream.Consumer(ctx, name); return err },
		"Stream.DeleteConsumer": func() error { return stream.DeleteConsumer(ctx, name) },
		"ListConsumers": func() error {
			list := stream.ListConsumers(ctx)
			for range list.Info() {
			}
			return list.Err()
		},
		"ConsumerNames": func() error {
			list := stream.ConsumerNames(ctx)
			for range list.Name() {
			}
			return list.Err()
		},
		"Consumer.Info": func() error { _, err := consumer.Info(ctx); return err },
	}
	for what, ask := range asked {
		if err := ask(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want %v", what, err, context.DeadlineExceeded)
		}
	}
	for _, name := range requests() {
		if asked[name] == nil && !slices.Contains(unused, name) {
			t.Errorf("%s is neither tried nor unused", name)
		}
	}
}

// unused are the requests that the program does not make.
var unused = []string{
	"AccountInfo", "CreateKeyValue", "CreateOrUpdateKeyValue", "UpdateKeyValue", "DeleteKeyValue", "KeyValue", "KeyValueStoreNames", "KeyValueStores",
	"CreateObjectStore", "CreateOrUpdateObjectStore", "UpdateObjectStore", "DeleteObjectStore", "ObjectStore", "ObjectStoreNames", "ObjectStores",
	"CreateOrUpdatePushConsumer", "CreatePushConsumer", "UpdatePushConsumer", "PushConsumer", "OrderedConsumer", "UpdateConsumer", "PauseConsumer",
	"ResumeConsumer", "UnpinConsumer", "ResetConsumer", "ResetConsumerToSequence", "UpdateStream", "StreamNameBySubject", "DeleteMsg", "DoubleAck",
}

// requests are the methods of the library that ask the server.
func requests() (names []string) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[jetstream.JetStream](), reflect.TypeFor[jetstream.Stream](),
		reflect.TypeFor[jetstream.Consumer](), reflect.TypeFor[jetstream.Msg](),
	} {
		for i := range of.NumMethod() {
			if m := of.Method(i); m.Type.NumIn() > 0 && m.Type.In(0) == reflect.TypeFor[context.Context]() {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// TestOnlyBoundedCalls walks the program: a request to JetStream goes through
// [NewJetStream] and is one that TestRequestsEnd tries, a round trip on the bare
// connection is made where a limit is set beside it, and the deadlines of contexts, which
// take the place of the limit of a request, are those of this list.
func TestOnlyBoundedCalls(t *testing.T) {
	t.Parallel()
	refused := map[string]bool{}
	for _, name := range unused {
		refused[name] = true
	}
	for _, name := range []string{"Request", "RequestMsg", "RequestWithContext", "RequestMsgWithContext", "Flush", "FlushWithContext"} {
		refused[name] = true
	}
	// These set a limit of their own.
	allowed := []string{
		"internal/broker/bounded.go: New", "internal/broker/connect.go: FlushWithContext",
		"internal/pipeline/conclude.go: DoubleAck", "internal/pipeline/listener.go: FlushWithContext",
	}
	limits := []string{
		// Some seconds.
		"internal/app/invocation.go: connectLimit", "internal/app/process.go: closeLimit", "internal/app/recover.go: closeLimit",
		"internal/broker/connect.go: 5 * time.Second", "internal/chaos/watch.go: askLimit", "internal/chaos/wire.go: ackLimit",
		"internal/doctor/doctor.go: limit", "internal/erasure/streams/streams.go: stillWait", "internal/pipeline/admission.go: lookLimit",
		"internal/pipeline/log_reader.go: grace", "internal/pipeline/source.go: pullExpiry + late", "internal/tail/tail.go: pullExpiry",
		"internal/tail/tail.go: requestLimit", "internal/tail/tail.go: time.Second",
		// A cluster without a leader drops requests, so the wait doubles from one second on.
		"internal/broker/remote.go: wait",
		// No request waits until these: an acknowledgement, a cursor, and a context that shows no deadline.
		"internal/pipeline/broker.go: b.timeout", "internal/pipeline/listener.go: b.timeout",
		"internal/pipeline/conclude.go: w.rt.cfg.PublishTimeout / attempts", "internal/pipeline/log_reader.go: r.rt.cfg.PublishTimeout",
		"internal/pipeline/runtime.go: limit",
		// A start waits for a server that is away, or for this process's own.
		"internal/app/backend.go: engine.AwayLimit", "internal/broker/embedded.go: startLimit",
		// The server lists the subjects of a stream for as long as it takes.
		"internal/erasure/streams/streams.go: subjectsLimit",
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
			what := path + ": " + f.Sel.Name
			switch {
			case of != nil && of.Name == "context" && (f.Sel.Name == "WithTimeout" || f.Sel.Name == "WithDeadline"):
				what = path + ": " + types.ExprString(call.Args[1])
				if found[what] = true; !slices.Contains(limits, what) {
					t.Errorf("%s: a context ends after that, which this list lacks", what)
				}
				return true
			case of != nil && of.Name == "jetstream" && strings.HasPrefix(f.Sel.Name, "New"):
			case !refused[f.Sel.Name]:
				return true
			}
			found[what] = true
			if !slices.Contains(allowed, what) {
				t.Errorf("%s: is not bounded", what)
			}
			return true
		})
	})
	for _, what := range append(allowed, limits...) {
		if !found[what] {
			t.Errorf("%s: is allowed and not called", what)
		}
	}
}

// speaksToBroker reports whether a file has the means to ask the broker.
func speaksToBroker(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		return strings.Contains(i.Path.Value, "nats-io/nats.go") || i.Path.Value == `"palimpsest/internal/broker"`
	})
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
