package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

// gap separates two columns.
const gap = "  "

// Table prints rows in columns, each as wide as its widest cell on the screen.
// [Table.Flush] prints them.
type Table struct {
	to   io.Writer
	rows []tableRow
}

type tableRow struct {
	style string
	cells []string
}

// NewTable begins a table that has a line of titles.
func NewTable(to io.Writer, titles ...string) *Table {
	return &Table{to: to, rows: []tableRow{{style: bold, cells: titles}}}
}

// Row adds a row.
func (t *Table) Row(cells ...any) { t.add("", cells) }

// FaintRow adds a row that steps back behind the others.
func (t *Table) FaintRow(cells ...any) { t.add(faint, cells) }

func (t *Table) add(style string, cells []any) {
	row := tableRow{style: style}
	for _, c := range cells {
		row.cells = append(row.cells, OneLine(fmt.Sprint(c)))
	}
	t.rows = append(t.rows, row)
}

// Flush prints the table.
func (t *Table) Flush() {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row.cells {
			line.WriteString(cell)
			if i < len(row.cells)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-uniseg.StringWidth(cell)) + gap)
			}
		}
		text := strings.TrimRight(line.String(), " ")
		if row.style != "" {
			text = styled(t.to, row.style, text)
		}
		_, _ = fmt.Fprintln(t.to, text)
	}
	t.rows = nil
}

// OneLine returns a text on one line and without control characters, so that it
// neither breaks a listing nor reaches the terminal as a command.
func OneLine(text string) string {
	visible := strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(visible), " ")
}
