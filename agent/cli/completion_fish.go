package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// fishHead defines a function that tells whether the words so far are those of a
// command.
const fishHead = `# Completion of osupgrade-agent for fish, made by: osupgrade-agent completion fish
function __osupgrade_agent_at
    set -l path
    set -l value no
    for word in (commandline -opc)[2..-1]
        if test $value = yes
            set value no
            continue
        end
        switch "$path $word"
            case %s
                set value yes
            case %s
                set path (string trim -- "$path $word")
        end
    end
    test "$path" = "$argv[1]"
end
complete -c osupgrade-agent -f
`

// fishCompletion returns the script for fish.
func fishCompletion(root *kong.Node) string {
	var script strings.Builder
	valued, commands := walkTables(root)
	fmt.Fprintf(&script, fishHead, strings.Join(valued, " "), strings.Join(commands, " "))
	for _, n := range withCommands(root) {
		line := "complete -c osupgrade-agent -n " + fishQuoted(`__osupgrade_agent_at "`+commandName(n)+`"`)
		for _, child := range visible(n) {
			fmt.Fprintf(&script, "%s -a %s -d %s\n", line, child.Name, fishQuoted(child.Help))
		}
		for _, arg := range n.Positional {
			if accepts(arg).kind != acceptsText {
				fmt.Fprintf(&script, "%s%s\n", line, strings.Replace(fishValue(arg), " -x", "", 1))
			}
		}
		for _, f := range flagsOf(n) {
			text := line
			if f.Short != 0 {
				text += " -s " + string(f.Short)
			}
			text += " -l " + f.Name
			if !f.IsBool() {
				text += fishValue(f.Value)
			}
			fmt.Fprintf(&script, "%s -d %s\n", text, fishQuoted(f.Help))
		}
	}
	return script.String()
}

// fishValue returns the options of complete for a value.
func fishValue(v *kong.Value) string {
	switch may := accepts(v); may.kind {
	case acceptsWords:
		return " -x -a " + fishQuoted(strings.Join(may.words, " "))
	case acceptsFile:
		return " -r -F"
	case acceptsFolder:
		return " -x -a '(__fish_complete_directories (commandline -ct))'"
	default:
		return " -x"
	}
}

func fishQuoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
