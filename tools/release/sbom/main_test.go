package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// TestBillOfThisTest lists the library that this test is built with.
func TestBillOfThisTest(t *testing.T) {
	t.Parallel()
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := write(&out, file); err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := json.Unmarshal(out.Bytes(), &bom); err != nil {
		t.Fatal(err)
	}
	for _, c := range *bom.Components {
		if c.Name == "github.com/CycloneDX/cyclonedx-go" && c.Version != "" {
			return
		}
	}
	t.Errorf("the library is not in %s", out.String())
}

func TestNoBinary(t *testing.T) {
	t.Parallel()
	if err := write(&bytes.Buffer{}, "main.go"); err == nil {
		t.Error("a source file has a bill of materials")
	}
}
