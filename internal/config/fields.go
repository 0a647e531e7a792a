package config

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"
)

// Origin says where a value came from: default, env NAME, flag, FILE:LINE.
type Origin string

// Default is the origin of a value that is not set.
const Default Origin = "default"

// Setting is one key with its value.
type Setting struct {
	// Key is the path of field names in snake_case: query.max_wait.
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin Origin `json:"origin"`
	// Secret values are masked when printed.
	Secret bool `json:"secret"`
}

// Section is a setting that reads its own part of a document.
type Section interface {
	// ReadYAML takes the value of the key in a file. Its errors name file and line.
	ReadYAML(file string, n ast.Node) error
	// ReadText takes the value of a variable or a flag.
	ReadText(text string) error
	// String is the value as it is shown.
	String() string
}

// Settings are the leaves of a struct, by key.
type Settings struct {
	order  []string
	fields map[string]*leaf
}

type leaf struct {
	value   reflect.Value
	section Section // nil for a value that is written as text
	origin  Origin
	secret  bool
}

// ErrUnknownKey: no field has that key.
var ErrUnknownKey = errors.New("unknown key")

var durationType = reflect.TypeFor[time.Duration]()

// Of returns the settings of a pointer to a struct, whose present values are
// the defaults. Leaves are strings, booleans, numbers, durations and lists of
// strings, and each [Section]; the fields of an embedded struct are those of the outer one; a field
// tagged `secret:"true"` is one; a field tagged `yaml:"-"`
// and anything that is not a leaf is none.
func Of(target any) *Settings {
	s := &Settings{fields: map[string]*leaf{}}
	s.add("", reflect.ValueOf(target).Elem())
	return s
}

func (s *Settings) add(prefix string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = snake(f.Name)
		}
		key := prefix + name
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			s.add(prefix, v.Field(i))
			continue
		}
		if section, ok := v.Field(i).Addr().Interface().(Section); ok {
			s.order = append(s.order, key)
			s.fields[key] = &leaf{section: section, origin: Default}
			continue
		}
		if f.Type.Kind() == reflect.Struct {
			s.add(key+".", v.Field(i))
			continue
		}
		if !settable(f.Type) {
			continue
		}
		s.order = append(s.order, key)
		s.fields[key] = &leaf{value: v.Field(i), origin: Default, secret: f.Tag.Get("secret") == "true"}
	}
}

func settable(t reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // kinds that are not listed are no leaves
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.String
	}
	return false
}

// snake turns MaxWait into max_wait and RetryBase into retry_base; a run of
// capitals is one word (HTTPPort → http_port).
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Set gives a key its value, written as text. The error names the key and wraps
// [ErrUnknownKey] where there is none.
func (s *Settings) Set(key, text string, origin Origin) error {
	f, ok := s.fields[key]
	if !ok {
		return fmt.Errorf("%s: %w %q", origin, ErrUnknownKey, key)
	}
	if f.section != nil {
		if err := f.section.ReadText(text); err != nil {
			return fmt.Errorf("%s: %w", origin, err)
		}
		f.origin = origin
		return nil
	}
	if err := parse(f.value, text); err != nil {
		return fmt.Errorf("%s: %s: %w", origin, key, err)
	}
	f.origin = origin
	return nil
}

func parse(v reflect.Value, text string) error {
	if v.Type() == durationType {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 250ms, 30s or 5m", text)
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() { //nolint:exhaustive // settable lets nothing else in
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number from 0", text)
		}
		v.SetUint(n)
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetFloat(x)
	case reflect.Slice:
		v.Set(reflect.ValueOf(list(text)).Convert(v.Type()))
	}
	return nil
}

func list(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// All lists the settings in the order of the struct, secrets masked.
func (s *Settings) All() []Setting {
	out := make([]Setting, 0, len(s.order))
	for _, key := range s.order {
		f := s.fields[key]
		out = append(out, Setting{Key: key, Value: show(f), Origin: f.origin, Secret: f.secret})
	}
	return out
}

// Origin is where the value of a key comes from; Default for an unknown key.
func (s *Settings) Origin(key string) Origin {
	if f, ok := s.fields[key]; ok {
		return f.origin
	}
	return Default
}

// String lists the settings that are not defaults, secrets masked.
func (s *Settings) String() string {
	var b strings.Builder
	for _, e := range s.All() {
		if e.Origin != Default {
			_, _ = fmt.Fprintf(&b, "%s=%s (%s) ", e.Key, e.Value, e.Origin)
		}
	}
	return b.String()
}

func show(f *leaf) string {
	if f.section != nil {
		return f.section.String()
	}
	text := fmt.Sprint(f.value.Interface())
	if f.value.Kind() == reflect.Slice {
		items := make([]string, f.value.Len())
		for i := range items {
			items[i] = f.value.Index(i).String()
		}
		text = strings.Join(items, ",")
	}
	if f.secret && text != "" {
		return "********"
	}
	return MaskURL(text)
}

// secretParameters are those of a URL's query that name a secret.
var secretParameters = []string{"password", "token", "secret"}

// MaskURL hides the secrets in the URLs that text is, if it is any, with commas
// between them: passwords, user names without one, which are tokens, and
// parameters of such names. NATS takes addresses without a scheme too, and a scheme may
// be mistyped: of these it hides all before the host.
func MaskURL(text string) string {
	parts := strings.Split(text, ",")
	for i, part := range parts {
		if strings.Contains(part, "://") {
			parts[i] = maskOne(part)
		} else if at := strings.LastIndexByte(part, '@'); at > 0 && strings.Contains(part, ":") && !strings.ContainsAny(part, " \t\n") {
			parts[i] = "xxxxx" + part[at:]
		}
	}
	return strings.Join(parts, ",")
}

func maskOne(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		scheme, _, _ := strings.Cut(text, "://")
		return scheme + "://xxxxx"
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), "xxxxx")
		} else if u.Scheme == "nats" || u.Scheme == "tls" {
			u.User = url.User("xxxxx")
		}
	}
	query := u.Query()
	for _, name := range secretParameters {
		if query.Has(name) {
			query.Set(name, "xxxxx")
			u.RawQuery = query.Encode()
		}
	}
	if u.String() == text {
		return text
	}
	return u.String()
}
