package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand writes the man pages, which have the text of --help.
type manCommand struct {
	Out string `help:"Folder to write the pages to; it is made when it does not exist. Pages in it are replaced." required:"" type:"path" placeholder:"DIR"`
}

// Run implements the command.
func (c *manCommand) Run(parsed *kong.Context, out io.Writer, program version) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil { //nolint:gosec // everybody may read them
		return fmt.Errorf("cannot make the folder of the man pages: %w", err)
	}
	var date string
	if info, ok := debug.ReadBuildInfo(); ok {
		date = commitDate(info.Settings)
	}
	pages := manPages(parsed.Model.Node, program, date)
	for _, page := range pages {
		if err := os.WriteFile(filepath.Join(c.Out, page.name+".1"), []byte(page.text), 0o644); err != nil { //nolint:gosec // everybody may read it
			return fmt.Errorf("cannot write a man page: %w", err)
		}
	}
	_, err := fmt.Fprintf(out, "Wrote %d man pages to %s; the first is osupgrade-agent.1.\n", len(pages), c.Out)
	return err
}

// commitDate returns the date of the commit that the program was built from, so that the
// same program always writes the same pages; "" when the build does not know it.
func commitDate(build []debug.BuildSetting) string {
	for _, setting := range build {
		if setting.Key == "vcs.time" {
			date, _, _ := strings.Cut(setting.Value, "T")
			return date
		}
	}
	return ""
}

// manPage is the page of a command, in the language of man(7).
type manPage struct{ name, text string }

// manPages returns the page of the program and of each of its commands.
func manPages(root *kong.Node, program version, date string) []manPage {
	var pages []manPage
	for _, n := range withCommands(root) {
		pages = append(pages, manPage{manName(n), manText(n, program, date)})
	}
	return pages
}

// manName returns the name of a command's page, such as osupgrade-agent-start.
func manName(n *kong.Node) string {
	return strings.ReplaceAll(strings.TrimSpace("osupgrade-agent "+commandName(n)), " ", "-")
}

func manText(n *kong.Node, program version, date string) string {
	var page strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&page, format+"\n", args...) }
	help := n.Help
	if n.Type == kong.ApplicationNode {
		help = summary
	}
	line(`.TH "%s" 1 "%s" "osupgrade\-agent %s" "User Commands"`, strings.ToUpper(roff(manName(n))), date, roff(string(program)))

	// Names of flags and variables are not broken in two.
	line(".nh\n.ad l")

	line(".SH NAME")
	short, _, _ := strings.Cut(help, ". ")
	line(`%s \- %s`, roff(manName(n)), roff(strings.TrimSuffix(short, ".")))

	line(".SH SYNOPSIS")
	line("%s", manSynopsis(n))

	line(".SH DESCRIPTION")
	page.WriteString(manParagraphs(help + "\n\n" + strings.TrimSuffix(n.Detail, exampleText(commandName(n)))))

	children := visible(n)
	if len(children) > 0 {
		line(".SH COMMANDS")
		for _, child := range children {
			line(".TP\n\\fB%s\\fP(1)\n%s", roff(manName(child)), roff(child.Help))
		}
	}
	if len(n.Positional) > 0 {
		line(".SH ARGUMENTS")
		for _, arg := range n.Positional {
			line(".TP\n%s\n%s", manArgument(arg), roff(arg.Help))
		}
	}
	line(".SH OPTIONS")
	for _, f := range flagsOf(n) {
		line(".TP\n%s\n%s", manFlag(f), roff(manFlagHelp(f)))
	}
	if lines := examples[commandName(n)]; len(lines) > 0 {
		line(".SH EXAMPLES")
		page.WriteString(manLiteral(lines))
	}
	line(".SH EXIT STATUS")
	for _, status := range exitStatuses {
		line(".TP\n\\fB%d\\fP\n%s", status.code, roff(status.meaning))
	}
	line(".SH SEE ALSO")
	related := children
	for at := n.Parent; at != nil; at = at.Parent {
		related = append([]*kong.Node{at}, related...)
	}
	references := make([]string, len(related))
	for i, other := range related {
		references[i] = `\fB` + roff(manName(other)) + `\fP(1)`
	}
	line("%s", strings.Join(references, ",\n"))
	return page.String()
}

// manSynopsis returns how a command is called: what it needs, then what it may have.
func manSynopsis(n *kong.Node) string {
	text := `\fB` + roff(strings.TrimSpace("osupgrade-agent "+commandName(n))) + `\fP`
	for _, f := range flagsOf(n) {
		if f.Required {
			text += ` \fB` + roff("--"+f.Name) + `\fP=\fI` + roff(manValue(f)) + `\fP`
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
	name := `\fI` + roff(arg.Name) + `\fP`
	if may := accepts(arg); may.kind == acceptsWords {
		name = `\fI` + roff(strings.Join(may.words, "|")) + `\fP`
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
		words[i] = `\fB` + roff(words[i]) + `\fP`
	}
	text := strings.Join(words, ", ")
	if !f.IsBool() {
		text += `=\fI` + roff(manValue(f)) + `\fP`
	}
	return text
}

// manValue returns what stands for the value of a flag.
func manValue(f *kong.Flag) string {
	may := accepts(f.Value)
	switch {
	case may.kind == acceptsWords && f.IsSlice():
		return strings.Join(may.words, ",")
	case may.kind == acceptsWords:
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
			out += roff(line) + "\n"
		}
	}
	return out
}

// manLiteral returns lines that are not filled.
func manLiteral(lines []string) string {
	out := ".RS 4\n.nf\n"
	for _, line := range lines {
		out += roff(line) + "\n"
	}
	return out + ".fi\n.RE\n"
}

// roffSpecial has what roff would take for something else or print as another
// character: - as a hyphen, ' and ` as quotation marks, ^ and ~ as accents.
var roffSpecial = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// roff escapes a line of text. A line that begins with a dot would be a request.
func roff(line string) string {
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
