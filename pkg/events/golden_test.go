package events

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write the schemas and golden files anew")

// goldenFile is a message as it stands in testdata/golden.
type goldenFile struct {
	Subject string              `json:"subject"`
	Headers map[string][]string `json:"headers"`
	Body    json.RawMessage     `json:"body"`
}

// same compares a file with its expected content, or writes it with -update.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(have)); diff != "" {
		t.Errorf("%s is stale, run go generate ./pkg/events (-want +have):\n%s", path, diff)
	}
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	g := newGenerator(t)
	var kinds []Kind
	for _, s := range samples() {
		kinds = append(kinds, s.payload.Kind())
		same(t, filepath.Join("schemas", string(s.payload.Kind())+".json"), g.text(t, s.payload))
	}
	if diff := cmp.Diff(Kinds(), slices.Compact(kinds)); diff != "" {
		t.Errorf("kinds without a sample (-want +have):\n%s", diff)
	}
	if _, ok := Schema("palimpsest.unknown.kind.v1"); ok {
		t.Error("a schema of an unknown kind")
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		kind := s.payload.Kind()
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			subject, head, body, err := Encode(s.meta, s.payload)
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.MarshalIndent(goldenFile{subject, head, body}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "golden", string(kind)+".json")
			same(t, path, append(want, '\n'))

			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var have goldenFile
			if err := json.Unmarshal(text, &have); err != nil {
				t.Fatal(err)
			}
			validate(t, kind, have.Body)
			s.decoded(t, have)
		})
	}
}

// validate holds data against the kind's published schema.
func validate(t *testing.T, kind Kind, data []byte) {
	t.Helper()
	text, ok := Schema(kind)
	if !ok {
		t.Fatalf("no schema of %s", kind)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s does not fit its schema: %v", kind, err)
	}
}

// TestBatchWithoutFootprintIsRead: batches of the version before lie in the
// stream when this one starts.
func TestBatchWithoutFootprintIsRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "golden", string(KindDeltasDecided)+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file goldenFile
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(file.Body, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "footprint")
	delete(members, "basis_sequence")
	body, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	validate(t, KindDeltasDecided, body)
	batch, err := DecodeData[DeltasDecided](Meta{Kind: KindDeltasDecided, Scope: samples()[0].meta.Scope.Fact()}, body)
	if err != nil || batch.Data.Footprint != nil || batch.Data.Basis != 8 || len(batch.Data.Deltas) == 0 {
		t.Errorf("read %+v, %v", batch.Data, err)
	}
}
