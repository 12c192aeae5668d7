package dnf

import (
	"errors"
	"fmt"
	"strings"
)

// resolved is what dnf would do.
type resolved struct {
	packages []item
	// skipped would be upgraded if their dependencies were met, or nothing were in the way.
	skipped []item
	// replaced are packages that others obsolete.
	replaced []item
}

// item is a package of a transaction.
type item struct {
	action action
	// key is "name.arch", version epoch:version-release.
	key, version string
}

// action is what becomes of a package.
type action int

const (
	installs action = iota + 1
	upgrades
	downgrades
	removes
	skips
)

// sections are the headings of the table that dnf prints.
var sections = map[string]action{
	"Installing": installs, "Installing dependencies": installs, "Installing weak dependencies": installs,
	"Installing group packages": installs, "Installing group/module packages": installs,
	"Upgrading": upgrades, "Downgrading": downgrades,
	"Removing": removes, "Removing dependent packages": removes, "Removing unused dependencies": removes,
	"Skipping packages with conflicts": skips, "Skipping packages with broken dependencies": skips,
}

const (
	nothing = "Nothing to do."
	aborted = "Operation aborted."
)

// parseResolved reads what dnf prints with --assumeno. It is strict: what it does not
// know is an error, since a part of a plan is no plan. A row begins with one space;
// where the terminal is narrow it goes on in lines with more of them.
func parseResolved(printed string) (resolved, error) {
	var r resolved
	if !strings.Contains(printed, "\n"+aborted) {
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
		is, known := sections[strings.TrimSuffix(line, ":")]
		if !known {
			return fmt.Errorf("dnf would do what no plan can name: %.100q", line)
		}
		p.section = is
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
	is := item{p.section, row[0] + "." + row[1], row[2]}
	if p.section == skips {
		p.into.skipped = append(p.into.skipped, is)
	} else {
		p.into.packages = append(p.into.packages, is)
	}
	return nil
}
