package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// terminal is where a command prints. On a terminal it prints in colour and keeps a
// bar in the last line; in a pipe or a file it prints plain lines.
type terminal struct {
	out    io.Writer
	colour bool
	// live tells that a line can be replaced, width how many columns there are.
	live  bool
	width int
	// bar is the last line; empty when there is none.
	bar string
	err error
}

// defaultWidth is that of a terminal that does not tell its own.
const defaultWidth = 80

// newTerminal finds out what out is. NO_COLOR turns colour off (no-color.org), and so
// does TERM=dumb, which cannot replace a line either.
func newTerminal(out io.Writer) *terminal {
	t := &terminal{out: out, width: defaultWidth}
	file, ok := out.(*os.File)
	if !ok {
		return t
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil || os.Getenv("TERM") == "dumb" {
		return t
	}
	t.live, t.colour = true, os.Getenv("NO_COLOR") == ""
	if size.Col > 0 {
		t.width = int(size.Col)
	}
	return t
}

// The colours of what is good, bad, and to be watched, and of what matters less.
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	grey   = "90"
	bold   = "1"
)

// paint shows a text in a colour.
func (t *terminal) paint(colour, s string) string {
	if !t.colour || colour == "" || s == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// clearLine goes to the beginning of the line and erases it.
const clearLine = "\r\x1b[K"

// visible writes what moves the cursor, begins a line or turns the order of letters round as Go
// does in a literal: a text that somebody else chose can then not pass for another line.
func visible(text string) string {
	var shown strings.Builder
	for _, c := range text {
		if unicode.IsPrint(c) {
			shown.WriteRune(c)
			continue
		}
		quoted := strconv.QuoteRune(c)
		shown.WriteString(quoted[1 : len(quoted)-1])
	}
	return shown.String()
}

// line prints a line above the bar.
func (t *terminal) line(s string) {
	if t.bar == "" {
		t.print(s + "\n")
		return
	}
	t.print(clearLine + s + "\n" + t.bar)
}

// linef is line of a formatted text.
func (t *terminal) linef(format string, args ...any) { t.line(fmt.Sprintf(format, args...)) }

// setBar replaces the bar, where there can be one.
func (t *terminal) setBar(s string) {
	// The last column stays empty: some terminals wrap at it.
	if s = text.FitColumns(s, t.width-1, ""); !t.live || s == t.bar {
		return
	}
	t.bar = s
	t.print(clearLine + s)
}

func (t *terminal) print(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.out, s)
	}
}

// barWidth is how many characters a progress bar has.
const barWidth = 24

// progressBar draws how many of all are done, and how many of these have failed.
func progressBar(upgraded, failed, all int) string {
	if all == 0 {
		return ""
	}
	good, bad := barWidth*upgraded/all, barWidth*failed/all
	if failed > 0 && bad == 0 {
		bad = 1
	}
	good = min(good, barWidth-bad)
	return "[" + strings.Repeat("#", good) + strings.Repeat("x", bad) + strings.Repeat(".", barWidth-good-bad) + "]"
}

// table prints rows in columns. colours is the colour of each row's cells; a column
// without one is plain.
type table struct {
	rows    [][]string
	colours []map[int]string
}

func (t *table) add(cells ...string) { t.addIn(nil, cells...) }

func (t *table) addIn(colours map[int]string, cells ...string) {
	t.rows, t.colours = append(t.rows, cells), append(t.colours, colours)
}

// print prints the table, its columns two blanks apart. A column in which nothing
// stands below the head is left out.
func (t *table) print(to *terminal) {
	widths := map[int]int{}
	for n, row := range t.rows {
		for i, cell := range row {
			if n > 0 && cell != "" || widths[i] > 0 {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell), utf8.RuneCountInString(t.rows[0][min(i, len(t.rows[0])-1)]))
			}
		}
	}
	for n, row := range t.rows {
		var line strings.Builder
		pad := 0
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			if cell == "" {
				pad += widths[i] + 2
				continue
			}
			line.WriteString(strings.Repeat(" ", pad) + to.paint(t.colours[n][i], cell))
			pad = widths[i] - utf8.RuneCountInString(cell) + 2
		}
		to.line(line.String())
	}
}

// facts prints names and values, one a line.
type facts struct {
	rows [][2]string
}

func (f *facts) add(name, value string) {
	if value != "" {
		f.rows = append(f.rows, [2]string{name + ":", value})
	}
}

// title adds a name without a value, above the facts that belong to it.
func (f *facts) title(name string) { f.rows = append(f.rows, [2]string{name + ":", ""}) }

func (f *facts) print(to *terminal) {
	width := 0
	for _, row := range f.rows {
		width = max(width, len(row[0]))
	}
	for _, row := range f.rows {
		to.line(strings.TrimRight(row[0]+strings.Repeat(" ", width-len(row[0])+2)+row[1], " "))
	}
}
