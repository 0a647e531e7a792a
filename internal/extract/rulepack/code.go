package rulepack

import (
	"regexp"
	"strings"

	"palimpsest/internal/memory"
)

// codeMarks are strings of program text, logs and commands that prose does not
// have.
var codeMarks = []string{
	"();", "();", "){", ") {", "};", " = ", "==", "=>", "->", "&&", "||", "::", "</", "/>", "<?", "#include", "${", "$(",
	" -m \"", "\\n", "0x", "[error]", "[warn", "[info]", "sudo ", "npm install", "git commit", "git push", "pip install", "return \"",
}

var (
	// codeLine is a line that is program text from its beginning: a keyword, an
	// error of a runtime, a stack frame, a shell prompt.
	codeLine = regexp.MustCompile(`^\s*(?:(?:def|func|class|import|const|let|var|return|public|private|static|void|#define)\s+[\w.<>{*]+\s*[({:;=]|(?i:select|insert|update|delete)\s.*\s(?i:from|into|set)\s|\w*(?:Error|Exception|Warning)\b.*:|(?i:error|warning|fatal|panic|traceback|exception)\b.*:|at\s+[\w.$]+\(|\$\s|#\s*[a-z]+\s|//)`)
	// inlineCode is what stands between backticks.
	inlineCode = regexp.MustCompile("`[^`\n]+`")
)

// blankCode replaces lines of program text and spans between backticks by
// spaces, so that the places of all else stay.
func blankCode(content string) string {
	if !strings.ContainsAny(content, "`=;(){}<>:$#|\\-") {
		return content
	}
	var b strings.Builder
	b.Grow(len(content))
	for line := range strings.Lines(content) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			b.WriteString(line)
			continue
		}
		if isCode(line) {
			b.WriteString(strings.Repeat(" ", len(strings.TrimRight(line, "\n"))))
			if strings.HasSuffix(line, "\n") {
				b.WriteByte('\n')
			}
			continue
		}
		b.WriteString(inlineCode.ReplaceAllStringFunc(line, func(s string) string { return "`" + strings.Repeat(" ", len(s)-2) + "`" }))
	}
	return b.String()
}

func isCode(line string) bool {
	for _, mark := range codeMarks {
		if strings.Contains(line, mark) {
			return true
		}
	}
	return codeLine.MatchString(line)
}

// blank replaces injected memory and code, which the speaker did not say, by line
// breaks.
func blank(content string) string {
	content = blankCode(memory.BlankContext(content))
	const fence = "```"
	if !strings.Contains(content, fence) {
		return content
	}
	var b strings.Builder
	b.Grow(len(content))
	for i, part := range strings.Split(content, fence) {
		if i > 0 {
			b.WriteString("\n\n\n")
		}
		if i%2 == 1 {
			part = strings.Repeat("\n", len(part))
		}
		b.WriteString(part)
	}
	return b.String()
}
