package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// zshTail registers the function when the script is sourced, and calls it when zsh has
// loaded it from a file of its fpath.
const zshTail = `if [ "$funcstack[1]" = _osupgrade_agent ]; then
    _osupgrade_agent "$@"
else
    compdef _osupgrade_agent osupgrade-agent
fi
`

// zshCompletion returns the script for zsh: a function for each command.
func zshCompletion(root *kong.Node) string {
	var script strings.Builder
	script.WriteString("#compdef osupgrade-agent\n# Completion of osupgrade-agent for zsh, made by: osupgrade-agent completion zsh\n")
	for _, n := range withCommands(root) {
		zshFunction(&script, n)
	}
	script.WriteString(zshTail)
	return script.String()
}

func zshFunction(script *strings.Builder, n *kong.Node) {
	fmt.Fprintf(script, "%s() {\n    local curcontext=$curcontext state line\n    local -A opt_args\n    local -a commands\n    _arguments -C", identifier(n))
	for _, f := range flagsOf(n) {
		script.WriteString(" \\\n        " + zshFlag(f))
	}
	children := visible(n)
	if len(children) == 0 {
		for i, arg := range n.Positional {
			at := fmt.Sprint(i + 1)
			if arg.IsCumulative() {
				at = "*"
			}
			script.WriteString(" \\\n        " + singleQuoted(at+zshValue(arg)))
		}
		script.WriteString("\n}\n")
		return
	}
	script.WriteString(" \\\n        '1:command:->command' \\\n        '*::argument:->argument'\n    case $state in\n    command)\n        commands=(\n")
	for _, child := range children {
		fmt.Fprintf(script, "            %s\n", singleQuoted(child.Name+":"+zshEscaped(child.Help)))
	}
	script.WriteString("        )\n        _describe command commands ;;\n    argument)\n        case $line[1] in\n")
	for _, child := range children {
		fmt.Fprintf(script, "        %s) %s ;;\n", child.Name, identifier(child))
	}
	script.WriteString("        esac ;;\n    esac\n}\n")
}

// zshFlag returns the specification of a flag for _arguments.
func zshFlag(f *kong.Flag) string {
	words, value := spelled(f), ""
	if !f.IsBool() {
		words[len(words)-1] += "="
		value = zshValue(f.Value)
	}
	rest := "[" + zshEscaped(f.Help) + "]" + value
	if len(words) == 1 {
		if f.IsCumulative() {
			words[0] = "*" + words[0]
		}
		return singleQuoted(words[0] + rest)
	}
	// Both ways to write it, of which one excludes the other unless it may be repeated.
	before := "(" + strings.Join(spelled(f), " ") + ")"
	if f.IsCumulative() {
		before = "*"
	}
	return singleQuoted(before) + "{" + strings.Join(words, ",") + "}" + singleQuoted(rest)
}

// zshValue returns the message and the action of a value for _arguments.
func zshValue(v *kong.Value) string {
	action := " "
	switch may := accepts(v); may.kind {
	case acceptsWords:
		action = "(" + strings.Join(may.words, " ") + ")"
		if v.IsSlice() {
			action = "_values -s , " + v.Name + " " + strings.Join(may.words, " ")
		}
	case acceptsFile:
		action = "_files"
	case acceptsFolder:
		action = "_files -/"
	case acceptsText:
	}
	return ":" + zshEscaped(v.Name) + ":" + action
}

// zshEscaped escapes what ends a description.
func zshEscaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(text)
}
