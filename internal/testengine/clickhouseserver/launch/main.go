//go:build linux && (amd64 || arm64)

// Command launch runs the ClickHouse that libchdb.so holds as a server, until
// its standard input ends: then it stops cleanly, so that no process outlives the
// tests. It loads the library without cgo. DIR is the working directory; it holds
// the server's config.xml and its data.
//
//	launch LIBRARY DIR TCP-PORT HTTP-PORT
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/ebitengine/purego"
)

// grace is how long the server may take to stop.
const grace = 10 * time.Second

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: launch LIBRARY DIR TCP-PORT HTTP-PORT")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "launch:", err)
		os.Exit(1)
	}
}

func serve(library, dir, tcp, http string) error {
	lib, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return err
	}
	var handleSignals func(enabled bool)
	var run func(argc int32, argv **byte) uintptr
	var errorOf func(result uintptr) string
	purego.RegisterLibFunc(&handleSignals, lib, "chdb_set_signal_handlers_enabled")
	purego.RegisterLibFunc(&run, lib, "chdb_query_cmdline")
	purego.RegisterLibFunc(&errorOf, lib, "chdb_result_error")
	handleSignals(false) // they stay with the Go runtime

	gate := filepath.Join(dir, "gate")
	_ = os.Remove(gate)
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		return fmt.Errorf("make %s: %w", gate, err)
	}
	// O_RDWR, so that the open does not block; the reader gets EOF when this
	// descriptor closes.
	hold, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	go stopWithInput(hold)

	argv, pins := arguments("clickhouse", "--config-file="+filepath.Join(dir, "config.xml"), "--path="+filepath.Join(dir, "data"), "--listen_host=127.0.0.1",
		"--tcp_port="+tcp, "--http_port="+http, "--query",
		"SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; SELECT * FROM file('"+gate+"', 'LineAsString') FORMAT Null; "+
			"SYSTEM STOP LISTEN HTTP; SYSTEM STOP LISTEN TCP")
	defer pins.Unpin()
	if said := errorOf(run(int32(len(argv)-1), &argv[0])); said != "" {
		return errors.New(said)
	}
	return nil
}

// stopWithInput opens the gate when standard input ends, and ends the process
// where that does not end it.
func stopWithInput(gate *os.File) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = gate.Close()
	<-time.After(grace)
	os.Exit(3)
}

// arguments are words as C has them: strings that end in NUL, in a list that
// ends in NULL.
func arguments(words ...string) ([]*byte, *runtime.Pinner) {
	argv, pins := make([]*byte, len(words)+1), &runtime.Pinner{}
	for i, w := range words {
		if strings.IndexByte(w, 0) >= 0 {
			panic("an argument holds NUL")
		}
		argv[i] = &append([]byte(w), 0)[0]
		pins.Pin(argv[i])
	}
	pins.Pin(&argv[0])
	return argv, pins
}
