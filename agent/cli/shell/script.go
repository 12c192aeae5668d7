package shell

import "strings"

// scripts complete a command line by calling the program itself, whose hidden command
// __complete has what Complete returns. What the program prints is never run or expanded.
var scripts = map[string]string{
	"bash": `# Completion of PROGRAM for bash 4.4 or later, made by: PROGRAM completion bash
FUNCTION() {
    local cur=${COMP_WORDS[COMP_CWORD]} kind
    [[ $cur != = ]] || cur=
    mapfile -t COMPREPLY < <(PROGRAM __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    kind=${COMPREPLY[0]-}
    COMPREPLY=("${COMPREPLY[@]:1}")
    COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
    [[ $kind ]] || return 0
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(if [[ $kind == folders ]]; then compgen -d -- "$cur"; else compgen -f -- "$cur"; fi)
}
complete -F FUNCTION PROGRAM
`,
	// Sourced, the script registers the function; from a file of fpath zsh calls it.
	"zsh": `#compdef PROGRAM
# Completion of PROGRAM for zsh, made by: PROGRAM completion zsh
FUNCTION() {
    local -a lines
    lines=("${(@f)$(PROGRAM __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null; print .)}")
    case $lines[1] in
    files) compset -P '--*='; _files ;;
    folders) compset -P '--*='; _files -/ ;;
    *) lines=("${(@)lines[2,-2]//:/\\:}"); lines=("${(@)lines/$'\t'/:}"); _describe value lines ;;
    esac
}
if [ "$funcstack[1]" = FUNCTION ]; then FUNCTION "$@"; else compdef FUNCTION PROGRAM; fi
`,
	"fish": `# Completion of PROGRAM for fish, made by: PROGRAM completion fish
function _FUNCTION
    set -l cur (commandline -ct)
    set -l flag (string match -r -- '^--[^=]+=' "$cur")
    set -l lines (PROGRAM __complete (commandline -opc)[2..-1] "$cur" 2>/dev/null)
    switch "$lines[1]"
        case files
            string replace -r '^' -- "$flag" (__fish_complete_path (string replace -- "$flag" '' "$cur"))
        case folders
            string replace -r '^' -- "$flag" (__fish_complete_directories (string replace -- "$flag" '' "$cur") '')
        case '*'
            string join \n -- $lines[2..-1]
    end
end
complete -c PROGRAM -f -a '(_FUNCTION)'
`,
}

// Script returns the script that completes the command lines of a program in a shell: bash,
// zsh or fish.
func Script(shell, program string) string {
	function := "_" + strings.ReplaceAll(program, "-", "_")
	return strings.NewReplacer("PROGRAM", program, "FUNCTION", function).Replace(scripts[shell])
}
