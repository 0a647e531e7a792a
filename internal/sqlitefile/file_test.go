package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errLocked, errNewer = errors.New("locked"), errors.New("newer")

// config is that of a file with one table for each script.
func config(path string, scripts ...string) Config {
	migrations := fstest.MapFS{}
	for i, script := range scripts {
		migrations["migrations/"+string(rune('1'+i))+".sql"] = &fstest.MapFile{Data: []byte(script), Mode: fs.ModePerm}
	}
	return Config{
		Path: path, Write: []string{"page_size(8192)", "synchronous(full)"}, Migrations: migrations,
		Errors: Errors{Locked: errLocked, Newer: errNewer},
	}
}

const (
	first  = "CREATE TABLE a (x)"
	second = "CREATE TABLE b (x)"
)

func pragma(t *testing.T, db *sql.DB, name string) (value string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "PRAGMA "+name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// TestOpen: one File at a time writes; any number read, and cannot write. The name may
// hold any character.
func TestOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "a b?c#d%25🙂.db")
	if _, err := OpenReading(t.Context(), config(path, first)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading a file that is not there: %v", err)
	}
	f, err := Open(t.Context(), config(path, first))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"page_size": "8192", "journal_mode": "wal", "synchronous": "2"} {
		if got := pragma(t, f.Write, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if _, err := Open(t.Context(), config(path, first)); !errors.Is(err, errLocked) {
		t.Errorf("a second one: %v", err)
	}
	reader, err := OpenReading(t.Context(), config(path, first))
	if err != nil {
		t.Fatal(err)
	}
	for _, db := range []*sql.DB{f.Read, reader.Read} {
		if _, err := db.ExecContext(t.Context(), "INSERT INTO a VALUES (1)"); err == nil {
			t.Error("a connection that reads wrote")
		}
	}
	if err := errors.Join(reader.Check(), reader.Close(), f.Check(), f.Close()); err != nil {
		t.Error(err)
	}
}

// TestSchemas: a later program migrates the file, a reader of it refuses an older file,
// and an earlier program refuses a newer one.
func TestSchemas(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	reopen := func(open func(context.Context, Config) (*File, error), scripts ...string) error {
		f, err := open(t.Context(), config(path, scripts...))
		if err == nil {
			err = f.Close()
		}
		return err
	}
	if err := reopen(Open, first); err != nil {
		t.Fatal(err)
	}
	if err := reopen(OpenReading, first, second); err == nil {
		t.Error("a reader took an older file")
	}
	if err := reopen(Open, first, second); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(context.Context, Config) (*File, error){Open, OpenReading} {
		if err := reopen(open, first); !errors.Is(err, errNewer) {
			t.Errorf("a newer file: %v", err)
		}
	}
}

// TestGone: a file that was replaced while in use is noticed.
func TestGone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	f, err := Open(t.Context(), config(path, first))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.Gone():
	case <-t.Context().Done():
	}
	if err := f.Check(); err == nil {
		t.Error("no error names the path")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
