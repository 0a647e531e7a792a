package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImageOfTwoPlatforms: each image is valid and holds the binary of its platform and the
// root certificates. The same binaries give the same index.
func TestImageOfTwoPlatforms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var binaries []string
	for _, arch := range []string{"amd64", "arm64"} {
		path := filepath.Join(dir, "palimpsest-linux-"+arch)
		if err := os.WriteFile(path, []byte("the program for "+arch), 0o600); err != nil {
			t.Fatal(err)
		}
		binaries = append(binaries, path)
	}
	written := func() v1.ImageIndex {
		out := t.TempDir()
		if err := write(out, "palimpsest:0.0.1", binaries); err != nil {
			t.Fatal(err)
		}
		root, err := layout.ImageIndexFromPath(out)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := root.IndexManifest()
		if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "palimpsest:0.0.1" {
			t.Fatalf("the layout has %+v: %v", manifest, err)
		}
		index, err := root.ImageIndex(manifest.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		return index
	}
	index := written()
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	first, err1 := index.Digest()
	second, err2 := written().Digest()
	if err1 != nil || err2 != nil || first != second {
		t.Errorf("the digest is %v, then %v: %v, %v", first, second, err1, err2)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("%+v: %v", manifest, err)
	}
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != m.Platform.Architecture || config.OS != "linux" || config.Config.User != "65532:65532" {
			t.Errorf("the configuration is %+v: %v", config, err)
		}
		files := extract(t, image)
		if got := string(files["palimpsest"]); got != "the program for "+m.Platform.Architecture {
			t.Errorf("the image for %s holds %q", m.Platform.Architecture, got)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]) {
			t.Error("the image holds no certificate")
		}
	}
}

func TestBinaryWithoutPlatform(t *testing.T) {
	t.Parallel()
	if err := write(t.TempDir(), "palimpsest:0.0.1", []string{"palimpsest"}); err == nil {
		t.Error("no error")
	}
}

// extract returns the files of an image by their paths.
func extract(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	stream := mutate.Extract(image)
	defer stream.Close() //nolint:errcheck // it is only read
	files := make(map[string][]byte)
	for r := tar.NewReader(stream); ; {
		header, err := r.Next()
		if err == io.EOF {
			return files
		}
		var b bytes.Buffer
		if err == nil {
			_, err = b.ReadFrom(r)
		}
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = b.Bytes()
	}
}
