package clickhouseserver

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ClickHouse/ch-go/compress"
)

// Holding returns the files of the server's data that hold a text, in clear or in
// compressed blocks. It leaves out the files directly in its directory, which are the
// test's.
func (s *Server) Holding(t testing.TB, text string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Dir(path) == s.dir {
			return skipMissing(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return skipMissing(err)
		}
		plain, _ := io.ReadAll(compress.NewReader(bytes.NewReader(raw))) // a file of another format ends the reading
		if bytes.Contains(bytes.ToLower(raw), []byte(text)) || bytes.Contains(bytes.ToLower(plain), []byte(text)) {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// skipMissing forgives a file that was removed meanwhile.
func skipMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
