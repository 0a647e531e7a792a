package transcript

import (
	"archive/zip"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"strings"
	"time"
)

// Message is one message of an export, or one memory.
type Message struct {
	// ID is unique within (user, agent, session).
	ID string
	// User, Agent and Session are those of the export; empty where it names none.
	User, Agent, Session string
	Role, Content        string
	// Time is zero where the export has none.
	Time     time.Time
	Metadata map[string]any
	// Memory: the content is a fact that another program extracted, not a message.
	Memory bool
}

// ErrUnknown: a value has the form of no known export.
var ErrUnknown = errors.New("the form of the value is unknown")

// Reader reads one export.
type Reader struct {
	file   io.Closer
	from   io.Reader
	size   int64
	at     int64
	number int
}

// Open opens a file, or conversations.json in an archive.
func Open(file string) (*Reader, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	r, err := open(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", file, err), f.Close())
	}
	return r, nil
}

// conversations is the file of archives of ChatGPT and Claude that has the messages.
const conversations = "conversations.json"

func open(f *os.File) (*Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := &Reader{file: f, from: f, size: info.Size()}
	magic := make([]byte, 4)
	if n, _ := f.ReadAt(magic, 0); n < len(magic) || string(magic) != "PK\x03\x04" {
		return r, nil
	}
	archive, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, err
	}
	for _, entry := range archive.File {
		if path.Base(entry.Name) == conversations {
			r.size = int64(min(entry.UncompressedSize64, 1<<62))
			r.from, err = entry.Open()
			return r, err
		}
	}
	return nil, fmt.Errorf("the archive has no %s", conversations)
}

// New reads an export from a stream.
func New(from io.Reader) *Reader { return &Reader{from: from} }

// Size is the number of bytes of the export; 0 if it is not known.
func (r *Reader) Size() int64 { return r.size }

// Read is the number of bytes that were read so far.
func (r *Reader) Read() int64 { return r.at }

// Close closes the file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// All returns the messages, in the order of the export and oldest first within a
// conversation. It ends at the first error, which names the value.
func (r *Reader) All() iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		counts := map[string]int{}
		for raw, err := range r.values() {
			var messages []Message
			if err == nil {
				messages, err = read(raw)
			}
			if err != nil {
				yield(Message{}, fmt.Errorf("value %d: %w", r.number, err))
				return
			}
			for _, m := range messages {
				if strings.TrimSpace(m.Content) == "" {
					continue
				}
				m.identify(counts)
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

// values returns the values of a stream, or the elements of an array if it begins
// with one.
func (r *Reader) values() iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		in := bufio.NewReader(r.from)
		array, err := begins(in, '[')
		if err != nil {
			yield(nil, err)
			return
		}
		dec := json.NewDecoder(in)
		if array {
			_, _ = dec.Token() // it was seen
		}
		for !array || dec.More() {
			r.number++
			var raw json.RawMessage
			err := dec.Decode(&raw)
			r.at = dec.InputOffset()
			if !array && errors.Is(err, io.EOF) {
				return
			}
			if !yield(raw, err) || err != nil {
				return
			}
		}
		if _, err := dec.Token(); err != nil {
			yield(nil, fmt.Errorf("the array does not end: %w", err))
		}
	}
}

// byteOrderMark begins texts of some programs.
const byteOrderMark = "\xef\xbb\xbf"

// begins reports whether the first character that is no space is c. It skips a byte
// order mark.
func begins(in *bufio.Reader, c byte) (bool, error) {
	if mark, err := in.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = in.Discard(len(mark)) // it was seen
	}
	for {
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(b)) {
			return b == c, in.UnreadByte()
		}
	}
}

// identify gives the message an id of its content where the export has none. Equal
// messages of a session are told apart by their order.
func (m *Message) identify(counts map[string]int) {
	if m.ID != "" {
		return
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{m.User, m.Agent, m.Session, m.Role, m.Time.UTC().Format(time.RFC3339Nano), m.Content}, "\x00")))
	key := hex.EncodeToString(sum[:16])
	counts[key]++
	m.ID = fmt.Sprintf("%s-%d", key, counts[key])
}
