package clickhouseserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	// startLimit bounds a start, which takes half a second on a calm machine.
	startLimit = 60 * time.Second
	// starts is how often in a row a server may end before it was ready.
	starts = 5
	// glance is the pause between looks at a server that starts.
	glance = 20 * time.Millisecond
)

// The user that tests log in as: with a password, as in earnest.
const user, password = "palimpsest", "test-only"

// config is the engine's, and the list of its users. The statements that start
// it run as default. Of the clusters that it lists no server runs.
const config = `<clickhouse>
	<users_config>config.xml</users_config>
	<users>
		<default><password/><profile>default</profile><quota>default</quota><networks><ip>::/0</ip></networks></default>
		<` + user + `><password>` + password + `</password><profile>default</profile><quota>default</quota><networks><ip>::/0</ip></networks></` + user + `>
	</users>
	<profiles><default/></profiles>
	<quotas><default/></quotas>
	<remote_servers>
		<copies><shard><replica><host>127.0.0.1</host><port>1</port></replica></shard></copies>
		<divided>
			<shard><replica><host>127.0.0.1</host><port>1</port></replica></shard>
			<shard><replica><host>127.0.0.1</host><port>2</port></replica></shard>
		</divided>
	</remote_servers>
</clickhouse>`

// Server is an engine in a process of its own. One that dies is started again
// on its ports and its data, as an operator's supervisor would; the engine in
// libchdb aborts on some input that a ClickHouse server refuses.
type Server struct {
	dir, library string
	native, http int

	mu      sync.Mutex
	process *os.Process
	input   io.Closer // its end stops the process
	away    bool      // no process is wanted for now
	wanted  *sync.Cond
	ending  bool

	ready chan struct{} // closed once the first process answers
	done  chan struct{} // closed when the supervisor is gone
	err   error         // why it went; read after done
}

// NewServer starts an engine and waits until it answers.
func NewServer(library string) (*Server, error) {
	dir, err := os.MkdirTemp("", "palimpsest-clickhouse-*")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, library: library, ready: make(chan struct{}), done: make(chan struct{})}
	s.wanted = sync.NewCond(&s.mu)
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go s.supervise()
	select {
	case <-s.ready:
		return s, nil
	case <-s.done:
		return nil, errors.Join(s.err, os.RemoveAll(dir))
	}
}

func (s *Server) prepare() (err error) {
	build := exec.Command("go", "build", "-o", filepath.Join(s.dir, "launch"), "palimpsest/internal/testengine/clickhouseserver/launch")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the launcher: %w\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "config.xml"), []byte(config), 0o600); err != nil {
		return err
	}
	if s.native, err = freePort(); err != nil {
		return err
	}
	s.http, err = freePort()
	return err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// supervise keeps a process running until the server is stopped, or until it
// will not start.
func (s *Server) supervise() {
	defer close(s.done)
	for failed := 0; failed < starts; {
		process, err := s.launch()
		if err != nil {
			s.err = err
			return
		}
		if process == nil {
			return // stopped meanwhile
		}
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			_ = process.Wait() // how it ended is in the log
		}()
		if s.await(exited) {
			failed = 0
			<-exited
		} else {
			failed++
		}
	}
	said, _ := os.ReadFile(s.log())
	s.err = fmt.Errorf("the engine does not start:\n%s", said[max(0, len(said)-4000):])
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// launch starts a process once one is wanted, or none if the server is being
// stopped.
func (s *Server) launch() (*exec.Cmd, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.away {
		s.wanted.Wait()
	}
	if s.ending {
		return nil, nil
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor
	c := exec.Command(filepath.Join(s.dir, "launch"), s.library, s.dir, strconv.Itoa(s.native), strconv.Itoa(s.http))
	c.Dir, c.Stdout, c.Stderr = s.dir, log, log
	if s.input, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	s.process = c.Process
	return c, nil
}

// await reports whether the process came to answer. One that does not in time is
// killed.
func (s *Server) await(exited <-chan struct{}) bool {
	limit := time.After(startLimit)
	look := time.NewTicker(glance)
	defer look.Stop()
	for {
		select {
		case <-exited:
			return false
		case <-limit:
			s.Kill()
			<-exited
			return false
		case <-look.C:
		}
		if s.answers() {
			s.mu.Lock()
			defer s.mu.Unlock()
			select {
			case <-s.ready:
			default:
				close(s.ready)
			}
			return true
		}
	}
}

// answers tells whether both listeners take connections.
func (s *Server) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/ping", s.http), http.NoBody)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	if res.Body.Close() != nil || res.StatusCode != http.StatusOK {
		return false
	}
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.native))
	return err == nil && c.Close() == nil
}

// DSN is the server's over one of its protocols, "native" or "http".
func (s *Server) DSN(protocol, database string) string {
	u := url.URL{Scheme: "clickhouse", Host: fmt.Sprintf("127.0.0.1:%d", s.native), User: url.UserPassword(user, password), Path: "/" + database}
	if protocol == "http" {
		u.Scheme, u.Host = "http", fmt.Sprintf("127.0.0.1:%d", s.http)
	}
	return u.String()
}

// Kill ends the process at once (SIGKILL); another takes its place.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.process.Kill()
}

// Pause is Kill without another process, until Resume.
func (s *Server) Pause() {
	s.mu.Lock()
	s.away = true
	s.mu.Unlock()
	s.Kill()
}

// Resume lets a paused server start again, and does not wait for it.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
	s.wanted.Broadcast()
}

// Stop ends the server cleanly and removes its data.
func (s *Server) Stop() error {
	s.Resume()
	s.mu.Lock()
	s.ending = true
	_ = s.input.Close()
	s.mu.Unlock()
	<-s.done
	return errors.Join(s.err, os.RemoveAll(s.dir))
}
