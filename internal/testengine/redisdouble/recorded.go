package redisdouble

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// transcripts hold the commands that were sent to a real server, each in a line
// behind "> ", and its answers.
//
//go:embed testdata/*.txt
var transcripts embed.FS

// Recorded returns the shapes of all commands whose answers were recorded from a
// real server. script gives the text of one of the scripts that they name.
func Recorded(script func(file string) (string, error)) (map[string]bool, error) {
	files, err := transcripts.ReadDir("testdata")
	if err != nil {
		return nil, err
	}
	shapes := map[string]bool{}
	for _, f := range files {
		raw, err := transcripts.ReadFile("testdata/" + f.Name())
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(raw)) {
			command, is := strings.CutPrefix(line, "> ")
			if !is {
				continue
			}
			args, err := parseCommand(command, script)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name(), err)
			}
			shapes[Shape(args)] = true
		}
	}
	return shapes, nil
}

// argument is one of a line: a Go string in quotes, or a word without spaces.
var argument = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)

// parseCommand reads a line of a transcript. An argument that begins with < is
// replaced by the scripts that it names, with + between them, and one with # by
// the sum of that.
func parseCommand(line string, script func(file string) (string, error)) ([]string, error) {
	args := argument.FindAllString(line, -1)
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, `"`):
			if _, err := fmt.Sscanf(a, "%q", &args[i]); err != nil {
				return nil, fmt.Errorf("argument %s: %w", a, err)
			}
		case strings.HasSuffix(a, ".lua") && strings.ContainsRune("<#", rune(a[0])):
			var text strings.Builder
			for file := range strings.SplitSeq(a[1:], "+") {
				part, err := script(file)
				if err != nil {
					return nil, err
				}
				text.WriteString(part)
			}
			if args[i] = text.String(); a[0] == '#' {
				args[i] = sum(args[i])
			}
		}
	}
	return args, nil
}

func sum(script string) string {
	s := sha1.Sum([]byte(script))
	return hex.EncodeToString(s[:])
}

// shapes replaces the parts of a query that differ between queries and do not matter
// to its evaluation: names, values, and the number of operands of a kind.
var shapes = sync.OnceValue(func() (list []func(string) string) {
	for _, r := range [][2]string{
		{`@\w+`, `@f`}, {`\$\w+`, `$`}, {`'[^']*'`, `''`}, {`-?\b\d+\b`, `0`}, {`(\$\|)+\$`, `$`}, {`@f:\{(0|\w)\}`, `@f:{$}`},
		{`\(@f:\{\$\}\|-@f:\{\$\}\)`, `@f:{$}`}, {`(@f:\{\$\} )+@f:\{\$\}`, `@f:{$}`}, {`(@f:\[0 0\] )+@f:\[0 0\]`, `@f:[0 0]`},
		{`(@f:\{\$\}=>\{\$:0\} )+@f:\{\$\}=>\{\$:0\}`, `@f:{$}=>{$:0}`},
		{`(~@f:\(\$\) )+~@f:\(\$\)`, `~@f:($)`},
	} {
		list = append(list, func(s string) string { return regexp.MustCompile(r[0]).ReplaceAllString(s, r[1]) })
	}
	return list
})

// words of a command that are part of its shape.
var optionWord = regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)

// Shape is the common part of commands that the same code of a server answers: the
// name, the options, the form of the query; of a script the script.
func Shape(args []string) string {
	name := strings.ToUpper(args[0])
	if len(args) < 3 {
		return name
	}
	switch name {
	case "EVAL":
		return "script " + sum(args[1])
	case "EVALSHA":
		return "script " + args[1]
	case "FT.SEARCH", "FT.AGGREGATE":
		query := args[2]
		for _, cut := range shapes() {
			query = cut(query)
		}
		return strings.Join(append([]string{name, query}, options(name, args[3:])...), " ")
	case "SET", "ZRANGE", "FT.CREATE":
		return strings.Join(append([]string{name}, options(name, args[2:])...), " ")
	}
	return name
}

// options are the words of a command that say how, each once.
func options(name string, args []string) (list []string) {
	for i, a := range args {
		if !optionWord.MatchString(a) || slices.Contains(list, a) {
			continue
		}
		list = append(list, a)
		if a == "PARAMS" {
			break
		}
		if a == "FILTER" && name == "FT.AGGREGATE" {
			filter := args[i+1]
			for _, cut := range shapes() {
				filter = cut(filter)
			}
			list = append(list, filter)
		}
	}
	slices.Sort(list)
	return list
}
