package assistant

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/pretty"
	"github.com/tidwall/sjson"
)

// serverName is the name of the MCP server in the files of assistants.
const serverName = "palimpsest"

// serverEntry is an MCP server on standard input and output.
type serverEntry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// editServer adds the MCP server to a text, or removes it.
func (a assistant) editServer(text string, call Call, undo bool) (string, error) {
	entry := serverEntry{Command: call.Program, Args: append(append([]string{}, call.Flags...), "mcp", "--user", call.User, "--agent", a.name)}
	if filepath.Ext(a.server) == ".toml" {
		return editTOML(text, entry, undo)
	}
	if a.name == "claude-code" {
		entry.Type = "stdio"
	}
	return editJSON(text, func(text string) (string, error) {
		if undo {
			return without(text, "mcpServers", serverName)
		}
		return set(text, "mcpServers."+serverName, entry)
	})
}

// editHooks adds the hooks to a text, or removes them.
func (a assistant) editHooks(text string, call Call, undo bool) (string, error) {
	return editJSON(text, func(text string) (string, error) {
		var err error
		for _, event := range a.events {
			kept := a.others(gjson.Get(text, "hooks."+event))
			if !undo {
				kept = append(kept, a.hook(call))
			}
			if len(kept) == 0 {
				text, err = without(text, "hooks", event)
			} else {
				text, err = sjson.SetRaw(text, "hooks."+event, "["+strings.Join(kept, ",")+"]")
			}
			if err != nil {
				return "", err
			}
		}
		version := gjson.Get(text, "version")
		switch {
		case a.form != flat:
		case !undo && !version.Exists():
			return set(text, "version", 1)
		case undo && version.Exists() && len(gjson.Parse(text).Map()) == 1:
			return "{}", nil
		}
		return text, nil
	})
}

// hookSeconds bounds a hook.
const hookSeconds = 10

// hook is the entry of one event.
func (a assistant) hook(call Call) string {
	words := []string{quote(call.Program)}
	for _, flag := range call.Flags {
		words = append(words, quote(flag))
	}
	command := strings.Join(words, " ") + hookMark + a.name + " --user " + quote(call.User)
	entry := map[string]any{"command": command, "timeout": hookSeconds * a.second}
	if a.form == nested {
		entry["type"] = "command"
		return raw(map[string]any{"hooks": []any{entry}})
	}
	return raw(entry)
}

// others are the entries of an event without ours.
func (a assistant) others(entries gjson.Result) (kept []string) {
	for _, entry := range entries.Array() {
		if a.form == flat {
			if !a.ours(entry.Get("command").String()) {
				kept = append(kept, entry.Raw)
			}
			continue
		}
		var hooks []string
		all := entry.Get("hooks").Array()
		for _, hook := range all {
			if !a.ours(hook.Get("command").String()) {
				hooks = append(hooks, hook.Raw)
			}
		}
		switch {
		case len(hooks) == len(all):
			kept = append(kept, entry.Raw)
		case len(hooks) > 0:
			text, err := sjson.SetRaw(entry.Raw, "hooks", "["+strings.Join(hooks, ",")+"]")
			if err == nil {
				kept = append(kept, text)
			}
		}
	}
	return kept
}

var errNotJSON = errors.New("it is no JSON object; comments are not supported")

// editJSON applies an edit to an object in JSON and keeps the order of its members
// and its indentation. An object that becomes empty is no text.
func editJSON(text string, do func(string) (string, error)) (string, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	if !gjson.Valid(text) || !gjson.Parse(text).IsObject() {
		return "", errNotJSON
	}
	after, err := do(text)
	if err != nil {
		return "", err
	}
	if raw := string(pretty.Ugly([]byte(after))); raw == "{}" {
		return "", nil
	} else if raw == string(pretty.Ugly([]byte(text))) {
		return text, nil
	}
	formatted := string(pretty.PrettyOptions([]byte(after), &pretty.Options{Indent: indentation(text)}))
	if !strings.HasSuffix(text, "\n") && text != "{}" {
		formatted = strings.TrimSuffix(formatted, "\n")
	}
	return formatted, nil
}

// indentation is that of the first member of an object.
func indentation(text string) string {
	_, rest, found := strings.Cut(text, "\n")
	indent := rest[:len(rest)-len(strings.TrimLeft(rest, " \t"))]
	if !found || indent == "" {
		return "  "
	}
	return indent
}

func set(text, path string, value any) (string, error) { return sjson.SetRaw(text, path, raw(value)) }

// without removes a member of an object, and the object if it becomes empty.
func without(text, object, member string) (string, error) {
	if !gjson.Get(text, object+"."+member).Exists() {
		return text, nil
	}
	text, err := sjson.Delete(text, object+"."+member)
	if err == nil && len(gjson.Get(text, object).Map()) == 0 {
		text, err = sjson.Delete(text, object)
	}
	return text, err
}

// raw is the JSON of a value that can be written.
func raw(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// The lines around the section in a TOML file.
const (
	sectionBegin = "# palimpsest: begin\n"
	sectionEnd   = "# palimpsest: end\n"
)

// editTOML adds a section at the end of a text, or removes it. It leaves the rest as
// it is, comments included.
func editTOML(text string, entry serverEntry, undo bool) (string, error) {
	before, rest, found := strings.Cut(text, sectionBegin)
	if found {
		_, after, ended := strings.Cut(rest, sectionEnd)
		if !ended {
			return "", errors.New("the line " + strconv.Quote(strings.TrimSpace(sectionEnd)) + " is missing")
		}
		text = strings.TrimSuffix(before, "\n") + after
	}
	if undo {
		return text, nil
	}
	if strings.Contains(text, "[mcp_servers."+serverName+"]") {
		return "", errors.New("it has an MCP server of that name that this program did not add; remove it first")
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	var args []string
	for _, arg := range entry.Args {
		args = append(args, raw(arg)) // a basic string of TOML is one of JSON
	}
	section := sectionBegin + "[mcp_servers." + serverName + "]\ncommand = " + raw(entry.Command) + "\nargs = [" + strings.Join(args, ", ") + "]\n" + sectionEnd
	if text != "" {
		section = "\n" + section
	}
	return text + section, nil
}

// quote is a word for a shell.
func quote(word string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:=@", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
