// Command image writes a container image in the OCI layout: the static binary and root
// certificates, and nothing else. It needs no container engine. The same binaries give
// the same image.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: image DIR NAME:TAG BINARY-OS-ARCH…")
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		log.Fatal(err)
	}
}

// write makes an image of each binary and writes their index to dir. The platform of a
// binary is the end of its path.
func write(dir, tag string, binaries []string) error {
	if _, err := name.NewTag(tag); err != nil {
		return err
	}
	index := v1.ImageIndex(empty.Index)
	for _, binary := range binaries {
		parts := strings.Split(binary, "-")
		if len(parts) < 3 {
			return fmt.Errorf("%s: the name does not end with -OS-ARCH", binary)
		}
		platform := v1.Platform{OS: parts[len(parts)-2], Architecture: parts[len(parts)-1]}
		image, err := assemble(binary, platform)
		if err != nil {
			return fmt.Errorf("assemble %s: %w", binary, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
}

func assemble(binary string, platform v1.Platform) (v1.Image, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	roots, err := layer("etc/ssl/certs/ca-certificates.crt", 0o644, certificates())
	if err != nil {
		return nil, err
	}
	executable, err := layer("palimpsest", 0o755, program)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, roots, executable)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Config = v1.Config{
		User:         "65532:65532",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Entrypoint:   []string{"/palimpsest"},
		Cmd:          []string{"--help"},
	}
	return mutate.ConfigFile(image, config)
}

// layer is a layer of one file without a time, so that equal content gives equal layers.
func layer(path string, mode int64, content []byte) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: path, Mode: mode, Size: int64(len(content))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// certificates are the root certificates of Mozilla in PEM.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
	}
	return b.Bytes()
}
