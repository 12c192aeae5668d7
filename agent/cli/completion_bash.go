package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// bashHead finds the command and, where the word to complete is the value of a flag,
// the flag. Bash splits words at = and : (COMP_WORDBREAKS).
const bashHead = `# Completion of osupgrade-agent for bash 4.4 or later, made by: osupgrade-agent completion bash
_osupgrade_agent() {
    local cur=${COMP_WORDS[COMP_CWORD]} path= flag= word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == = ]]; then
            flag=${flag:-=}
            continue
        fi
        if [[ -n $flag ]]; then
            flag=
            continue
        fi
        case "$path $word" in
        %s)
            flag="$path $word" ;;
        %s)
            path=${path:+$path }$word ;;
        esac
    done
    if [[ $cur == = ]]; then
        cur= flag=${flag:-=}
    fi
    case $flag in
    '') ;;
`

const bashTail = `    *)
        return ;;
    esac
}
complete -F _osupgrade_agent osupgrade-agent
`

// bashCompletion returns the script for bash.
func bashCompletion(root *kong.Node) string {
	var script strings.Builder
	valued, commands := walkTables(root)
	fmt.Fprintf(&script, bashHead, strings.Join(valued, "|"), strings.Join(commands, "|"))
	// The flags of a kind have one line, however many there are.
	type values struct{ patterns, action string }
	var order []*values
	by := map[string]*values{}
	for _, n := range withCommands(root) {
		for _, f := range flagsOf(n) {
			action := bashAction(f.Value)
			if f.IsBool() || action == "" {
				continue
			}
			if by[action] == nil {
				by[action] = &values{action: action}
				order = append(order, by[action])
			}
			for _, word := range spelled(f) {
				by[action].patterns += "|" + singleQuoted(commandName(n)+" "+word)
			}
		}
	}
	for _, v := range order {
		fmt.Fprintf(&script, "    %s)\n        %s\n        return ;;\n", v.patterns[1:], v.action)
	}
	script.WriteString("    *)\n        return ;;\n    esac\n    case $path in\n")
	for _, n := range withCommands(root) {
		fmt.Fprintf(&script, "    %s)\n        %s ;;\n", singleQuoted(commandName(n)), bashWords(n))
	}
	script.WriteString(bashTail)
	return script.String()
}

// bashWords returns what completes a word of a command that is no flag's value: its
// commands or arguments and, after a hyphen or where it has neither, its flags.
func bashWords(n *kong.Node) string {
	var flags, children []string
	for _, f := range flagsOf(n) {
		flags = append(flags, spelled(f)...)
	}
	for _, child := range visible(n) {
		children = append(children, child.Name)
	}
	ofFlags, other := bashCompgen(strings.Join(flags, " ")), ""
	switch {
	case len(children) > 0:
		other = bashCompgen(strings.Join(children, " "))
	case len(n.Positional) > 0:
		other = bashAction(n.Positional[0])
	default:
		return ofFlags
	}
	if other == "" {
		other = ":"
	}
	return "if [[ $cur == -* ]]; then " + ofFlags + "; else " + other + "; fi"
}

// bashAction returns what completes a value; "" when nothing can.
func bashAction(v *kong.Value) string {
	switch may := accepts(v); may.kind {
	case acceptsWords:
		if v.IsSlice() {
			return fmt.Sprintf(`mapfile -t COMPREPLY < <(compgen -P "${cur%%"${cur##*,}"}" -W %s -- "${cur##*,}")`, singleQuoted(strings.Join(may.words, " ")))
		}
		return bashCompgen(strings.Join(may.words, " "))
	case acceptsFile:
		return `compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur")`
	case acceptsFolder:
		return `compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur")`
	default:
		return ""
	}
}

func bashCompgen(words string) string {
	return fmt.Sprintf(`mapfile -t COMPREPLY < <(compgen -W %s -- "$cur")`, singleQuoted(words))
}
