package shell

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
)

// Manual is what the man pages of a program say of all its commands.
type Manual struct {
	// Program is its name, Version and Date those of the build, Summary what it is for.
	Program, Version, Date, Summary string
	// Examples are the command lines that show the use of a command, by its name.
	Examples map[string][]string
	// Statuses are the exit codes of every command.
	Statuses []ExitStatus
}

// ExitStatus is an exit code and its meaning.
type ExitStatus struct {
	Code    int
	Meaning string
}

// Page is the page of a command, in the language of man(7).
type Page struct{ Name, Text string }

// Pages returns the page of the program and of each of its commands.
func (m Manual) Pages(root *kong.Node) []Page {
	var pages []Page
	for _, n := range Commands(root) {
		pages = append(pages, Page{m.name(n), m.text(n)})
	}
	return pages
}

// name returns the name of a command's page, such as osupgrade-agent-start.
func (m Manual) name(n *kong.Node) string {
	return strings.ReplaceAll(m.typed(n), " ", "-")
}

// typed returns a command as it is typed, such as osupgrade-agent start.
func (m Manual) typed(n *kong.Node) string { return strings.TrimSpace(m.Program + " " + Name(n)) }

// CommitDate returns the date of the commit that the program was built from, so that the
// same program always has the same pages; "" when the build does not know it.
func CommitDate(build []debug.BuildSetting) string {
	for _, setting := range build {
		if setting.Key == "vcs.time" {
			date, _, _ := strings.Cut(setting.Value, "T")
			return date
		}
	}
	return ""
}

// text returns the page of a command.
func (m Manual) text(n *kong.Node) string {
	var page strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&page, format+"\n", args...) }
	help := n.Help
	if n.Type == kong.ApplicationNode {
		help = m.Summary
	}
	line(`.TH "%s" 1 "%s" "%s %s" "User Commands"`, strings.ToUpper(Roff(m.name(n))), m.Date, Roff(m.Program), Roff(m.Version))

	// Names of flags and variables are not broken in two.
	line(".nh\n.ad l")

	line(".SH NAME")
	short, _, _ := strings.Cut(help, ". ")
	line(`%s \- %s`, Roff(m.name(n)), Roff(strings.TrimSuffix(short, ".")))

	line(".SH SYNOPSIS")
	line("%s", m.synopsis(n))

	line(".SH DESCRIPTION")
	page.WriteString(manParagraphs(help + "\n\n" + strings.TrimSuffix(n.Detail, ExampleText(m.Examples[Name(n)]))))

	children := visible(n)
	if len(children) > 0 {
		line(".SH COMMANDS")
		for _, child := range children {
			line(".TP\n\\fB%s\\fP(1)\n%s", Roff(m.name(child)), Roff(child.Help))
		}
	}
	if len(n.Positional) > 0 {
		line(".SH ARGUMENTS")
		for _, arg := range n.Positional {
			line(".TP\n%s\n%s", manArgument(arg), Roff(arg.Help))
		}
	}
	line(".SH OPTIONS")
	for _, f := range Flags(n) {
		line(".TP\n%s\n%s", manFlag(f), Roff(manFlagHelp(f)))
	}
	if lines := m.Examples[Name(n)]; len(lines) > 0 {
		line(".SH EXAMPLES")
		page.WriteString(manLiteral(lines))
	}
	line(".SH EXIT STATUS")
	for _, status := range m.Statuses {
		line(".TP\n\\fB%d\\fP\n%s", status.Code, Roff(status.Meaning))
	}
	line(".SH SEE ALSO")
	related := children
	for at := n.Parent; at != nil; at = at.Parent {
		related = append([]*kong.Node{at}, related...)
	}
	references := make([]string, len(related))
	for i, other := range related {
		references[i] = `\fB` + Roff(m.name(other)) + `\fP(1)`
	}
	line("%s", strings.Join(references, ",\n"))
	return page.String()
}

// synopsis returns how a command is called: what it needs, then what it may have.
func (m Manual) synopsis(n *kong.Node) string {
	text := `\fB` + Roff(m.typed(n)) + `\fP`
	for _, f := range Flags(n) {
		if f.Required {
			text += ` \fB` + Roff("--"+f.Name) + `\fP=\fI` + Roff(manValue(f)) + `\fP`
		}
	}
	text += ` [\fIoption\fP ...]`
	if len(visible(n)) > 0 {
		return text + ` \fIcommand\fP`
	}
	for _, arg := range n.Positional {
		if word := manArgument(arg); arg.Required {
			text += " " + word
		} else {
			text += " [" + word + "]"
		}
	}
	return text
}

func manArgument(arg *kong.Positional) string {
	name := `\fI` + Roff(arg.Name) + `\fP`
	if may := accepts(arg); len(may.words) > 0 {
		name = `\fI` + Roff(strings.Join(may.words, "|")) + `\fP`
	}
	if arg.IsCumulative() {
		name += " ..."
	}
	return name
}

// manFlag returns the ways to write a flag.
func manFlag(f *kong.Flag) string {
	words := spelled(f)
	for i := range words {
		words[i] = `\fB` + Roff(words[i]) + `\fP`
	}
	text := strings.Join(words, ", ")
	if !f.IsBool() {
		text += `=\fI` + Roff(manValue(f)) + `\fP`
	}
	return text
}

// manValue returns what stands for the value of a flag.
func manValue(f *kong.Flag) string {
	may := accepts(f.Value)
	switch {
	case len(may.words) > 0 && f.IsSlice():
		return strings.Join(may.words, ",")
	case len(may.words) > 0:
		return strings.Join(may.words, "|")
	case f.PlaceHolder != "":
		return f.PlaceHolder
	default:
		return strings.ToUpper(f.Name)
	}
}

// manFlagHelp returns the help of a flag with what else --help shows of it.
func manFlagHelp(f *kong.Flag) string {
	text := f.Help
	if f.HasDefault && f.Default != "" && !f.IsBool() {
		text += " Default: " + f.Default + "."
	}
	if len(f.Envs) > 0 {
		text += " Variable: " + strings.Join(f.Envs, ", ") + "."
	}
	if f.Required {
		text += " Required."
	}
	return text
}

// manParagraphs returns a text as paragraphs, of which those that are indented stay as
// they are.
func manParagraphs(text string) string {
	var out string
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		if strings.HasPrefix(lines[0], " ") {
			indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " "))]
			for i := range lines {
				lines[i] = strings.TrimPrefix(lines[i], indent)
			}
			out += ".PP\n" + manLiteral(lines)
			continue
		}
		if i > 0 {
			out += ".PP\n"
		}
		for _, line := range lines {
			out += Roff(line) + "\n"
		}
	}
	return out
}

// manLiteral returns lines that are not filled.
func manLiteral(lines []string) string {
	out := ".RS 4\n.nf\n"
	for _, line := range lines {
		out += Roff(line) + "\n"
	}
	return out + ".fi\n.RE\n"
}

// roffSpecial has what roff would take for something else or print as another
// character: - as a hyphen, ' and ` as quotation marks, ^ and ~ as accents.
var roffSpecial = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// Roff escapes a line of text. A line that begins with a dot would be a request.
func Roff(line string) string {
	var out strings.Builder
	if strings.HasPrefix(line, ".") {
		out.WriteString(`\&`)
	}
	for _, r := range roffSpecial.Replace(line) {
		if r < ' ' || r > '~' {
			fmt.Fprintf(&out, `\[u%04X]`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// ExampleText returns the examples of a command as its help ends with them.
func ExampleText(lines []string) string {
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return "Example:\n\n    " + lines[0]
	default:
		return "Examples:\n\n    " + strings.Join(lines, "\n    ")
	}
}
