// Command sbom prints a CycloneDX bill of materials of a Go binary: the modules
// that the build recorded, with their versions and hashes.
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sbom BINARY")
	}
	if err := write(os.Stdout, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func write(to io.Writer, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read %s: %w", binary, err)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, Name: "palimpsest", Version: info.Main.Version,
	}}
	components := []cyclonedx.Component{{Type: cyclonedx.ComponentTypePlatform, Name: "go", Version: info.GoVersion}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		components = append(components, cyclonedx.Component{
			Type: cyclonedx.ComponentTypeLibrary, Name: dep.Path, Version: dep.Version,
			PackageURL: "pkg:golang/" + dep.Path + "@" + dep.Version,
			Properties: &[]cyclonedx.Property{{Name: "go:sum", Value: dep.Sum}},
		})
	}
	bom.Components = &components
	return cyclonedx.NewBOMEncoder(to, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}
