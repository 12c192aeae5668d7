package dnf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// dnf4 is dnf 4.4 or later: Red Hat Enterprise Linux 8.4 to 10, Fedora to 40.
var dnf4 = generation{
	command: "dnf", name: "dnf 4",
	options: []string{"-y", "--setopt=skip_if_unavailable=0", "--setopt=*.skip_if_unavailable=0", "--setopt=exit_on_lock=1", "--setopt=strict=1"},
	cache:   "/var/cache/dnf",
	pidFiles: []string{
		"/var/lib/dnf/rpmdb_lock.pid", "/var/cache/dnf/download_lock.pid", "/var/cache/dnf/metadata_lock.pid",
	},
	unlocked:      []string{"--disableplugin=versionlock"},
	everything:    []string{"--disableplugin=versionlock", "--disableexcludes=all"},
	nobest:        "--nobest",
	replayCommand: []string{"history", "replay"},
	fetch:         "--downloadonly",
	rebootHint:    []string{offline, "needs-restarting", "-r"},
	format:        "0.0",
	resolved:      resolvedByDNF4,
	problems:      problemsByDNF4,
	cut:           cutByDNF4,
	telling:       tellingByDNF4,
}

// nothing is what both generations print when an upgrade changes nothing.
const nothing = "Nothing to do."

// resolvedByDNF4 reads what dnf 4 prints with --assumeno. It is strict: what it does not
// know is an error, since a part of a plan is no plan. A row begins with one space;
// where the terminal is narrow it goes on in lines with more of them.
func resolvedByDNF4(printed string) (resolved, error) {
	var r resolved
	if !strings.Contains(printed, "\nOperation aborted.") {
		if strings.Contains(printed, nothing) {
			return r, nil
		}
		return r, errors.New("dnf ended before it told what it would do")
	}
	_, rest, ok := strings.Cut(printed, "\n Package ")
	if !ok {
		return r, errors.New("dnf printed no table of packages")
	}
	table, _, ok := strings.Cut(rest, "\nTransaction Summary\n")
	if !ok {
		return r, errors.New("dnf printed no summary after its table of packages")
	}
	p := parser{into: &r}
	for i, line := range strings.Split(table, "\n") {
		if i == 0 || strings.HasPrefix(line, "====") {
			continue // The names of the columns, and the ruler below them.
		}
		if err := p.line(line); err != nil {
			return resolved{}, err
		}
	}
	if err := p.flush(); err != nil {
		return resolved{}, err
	}
	return r, nil
}

type parser struct {
	into    *resolved
	section action
	row     []string
}

func (p *parser) line(line string) error {
	words := strings.Fields(line)
	switch {
	case len(words) == 0, strings.HasPrefix(line, "(add '") && strings.HasSuffix(line, "):"):
		// "Skipping packages with conflicts:" has a second line with advice.
		return p.flush()
	case line[0] != ' ':
		if err := p.flush(); err != nil {
			return err
		}
		named, known := sections[strings.TrimSuffix(line, ":")]
		if !known {
			return fmt.Errorf("dnf would do what no plan can name: %.100q", line)
		}
		p.section = named
		return nil
	case len(words) == 3 && words[0] == "replacing" && strings.HasPrefix(line, "  "):
		if err := p.flush(); err != nil {
			return err
		}
		p.into.replaced = append(p.into.replaced, item{removes, words[1], words[2]})
		return nil
	case strings.HasPrefix(line, "  "):
		p.row = append(p.row, words...)
		return nil
	}
	err := p.flush()
	p.row = words
	return err
}

// flush takes a row: name, architecture, version, repository, and the size in one or two
// words.
func (p *parser) flush() error {
	row := p.row
	p.row = nil
	if row == nil {
		return nil
	}
	if len(row) < 5 || len(row) > 6 || p.section == 0 || !strings.Contains(row[2], "-") {
		return fmt.Errorf("dnf printed %.200q, which is not a package", strings.Join(row, " "))
	}
	p.into.add(item{p.section, row[0] + "." + row[1], row[2]})
	return nil
}

// problemsByDNF4 reads what dnf check prints: each line begins with a NEVRA, and one of a
// duplicate ends with the other.
func problemsByDNF4(printed string) (all []problem) {
	for line := range strings.Lines(printed) {
		words := strings.Fields(line)
		if len(words) < 3 || strings.HasPrefix(line, "Error:") {
			continue
		}
		all = append(all, problem{[]string{words[0], words[len(words)-1]}, strings.Join(words, " ")})
	}
	return all
}

// cutByDNF4 reports whether dnf history info tells of a transaction that did not end.
func cutByDNF4(printed string) bool {
	for line := range strings.Lines(printed) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "End rpmdb" && strings.TrimSpace(value) == "**" {
			return true
		}
		if strings.TrimSpace(name) == "Return-Code" {
			return strings.TrimSpace(value) != "Success"
		}
	}
	return false
}

// tellingByDNF4 takes what is after "Error:", and what rpm says about a package or a script.
func tellingByDNF4(line string, inError bool) (said string, goesOn bool) {
	plain := message.CleanText(strings.TrimSpace(line))
	rest, isError := strings.CutPrefix(plain, "Error:")
	switch {
	case isError:
		return strings.TrimSpace(rest), true
	case strings.HasPrefix(plain, "Problem repository: "), strings.HasPrefix(plain, "However, you do not have any GPG public keys"):
	case strings.HasPrefix(plain, "error: ") || strings.HasPrefix(plain, "warning: %") || strings.HasPrefix(plain, "Error in ") || strings.HasPrefix(plain, "Errors during"):
	case inError && strings.HasPrefix(line, " "):
	default:
		return "", false
	}
	return plain, inError
}
