package redisdouble

import (
	"fmt"
	"math"
	"strconv"

	"github.com/alicebob/miniredis/v2/server"
)

// pairs is a map that keeps its order: names and values in turn.
type pairs []any

// status is a simple string.
type status string

func write(w *server.Writer, v any) {
	switch v := v.(type) {
	case nil:
		w.WriteNull()
	case status:
		w.WriteInline(string(v))
	case string:
		w.WriteBulk(v)
	case int:
		w.WriteInt(v)
	case float64:
		w.WriteRaw("," + strconv.FormatFloat(v, 'g', 17, 64) + "\r\n")
	case []string:
		w.WriteStrings(v)
	case []any:
		w.WriteLen(len(v))
		for _, e := range v {
			write(w, e)
		}
	case pairs:
		w.WriteMapLen(len(v) / 2)
		for _, e := range v {
			write(w, e)
		}
	}
}

// refusal is an error in the words of the real server, which begin as they like.
func refusal(format string, args ...any) error { return fmt.Errorf(format, args...) }

// numberText is how the real server shows a number in a row: whole ones by all
// their digits, others by twelve.
func numberText(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1<<63 {
		return strconv.FormatInt(int64(x), 10)
	}
	return strconv.FormatFloat(x, 'g', 12, 64)
}
