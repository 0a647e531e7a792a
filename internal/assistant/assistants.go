package assistant

import (
	"path/filepath"
	"slices"
	"strings"
)

// Names are the assistants that a plan can be made for.
func Names() []string {
	var out []string
	for _, a := range assistants {
		out = append(out, a.name)
	}
	return out
}

// assistant is where one keeps its configuration, and in which form.
type assistant struct {
	name string
	// variable names the directory of the configuration; home is the directory below
	// the user's home without it.
	variable, home string
	// server is the file that lists MCP servers, below that directory unless beside is
	// set: then it is in the user's home.
	server string
	beside bool
	// hooks is the file of hooks below the directory; empty for an assistant without.
	hooks  string
	events []string
	form   form
	// second is a second in the unit of the timeouts of hooks.
	second int
	// note tells the user what else to do.
	note string
}

// form is how hooks are written down.
type form int

const (
	// nested: {"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …}]}]}}.
	nested form = iota
	// flat: {"version": 1, "hooks": {EVENT: [{"command": …}]}}.
	flat
)

var assistants = []assistant{
	{
		name: "claude-code", variable: "CLAUDE_CONFIG_DIR", home: ".claude", server: ".claude.json", beside: true, hooks: "settings.json",
		events: []string{"SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"}, second: 1,
		note: "Start a new session of Claude Code.",
	},
	{
		name: "codex", variable: "CODEX_HOME", home: ".codex", server: "config.toml", hooks: "hooks.json",
		events: []string{"SessionStart", "UserPromptSubmit", "Stop", "PreCompact"}, second: 1,
		note: "Codex asks once whether it may run the hooks: /hooks.",
	},
	{
		name: "cursor", home: ".cursor", server: "mcp.json", hooks: "hooks.json", form: flat,
		events: []string{"sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "preCompact", "sessionEnd"}, second: 1,
		note: "Cursor takes additional context at the start of a session only; during it, the model searches by MCP.",
	},
	{
		name: "gemini", home: ".gemini", server: "settings.json", hooks: "settings.json",
		events: []string{"SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"}, second: 1000,
		note: "Start a new session of Gemini CLI.",
	},
	{name: "windsurf", home: filepath.Join(".codeium", "windsurf"), server: "mcp_config.json", note: "Windsurf has no hooks that take context; its model searches by MCP."},
}

func named(name string) (assistant, bool) {
	at := slices.IndexFunc(assistants, func(a assistant) bool { return a.name == name })
	if at < 0 {
		return assistant{}, false
	}
	return assistants[at], true
}

// directory is where the assistant keeps its configuration.
func (a assistant) directory(home string, env func(name string) string) string {
	if a.variable != "" {
		if dir := env(a.variable); dir != "" {
			return dir
		}
	}
	return filepath.Join(home, a.home)
}

// serverFile is the file that lists MCP servers. A directory that the environment
// names holds it too.
func (a assistant) serverFile(home string, env func(name string) string) string {
	dir := a.directory(home, env)
	if a.beside && dir == filepath.Join(home, a.home) {
		dir = home
	}
	return filepath.Join(dir, a.server)
}

// hookMark is in the command of each hook of ours, with the assistant's name.
const hookMark = " hook "

// ours reports whether a hook runs this program for the assistant.
func (a assistant) ours(command string) bool {
	return strings.Contains(command, "palimpsest") && strings.Contains(command+" ", hookMark+a.name+" ")
}
