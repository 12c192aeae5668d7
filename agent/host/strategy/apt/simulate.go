package apt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// simulation is what apt-get would do, as apt-get --simulate prints it.
type simulation struct {
	changes []simulated
	// kept are the packages that apt keeps back, deferred those of them that the
	// distribution does not offer to every machine yet (phased updates).
	kept, deferred []string
}

// simulated is one change with the releases that its version is from, such as
// "Debian:12.11/stable, Debian-Security:12/stable-security".
type simulated struct {
	message.Change
	releases string
}

// plain returns the changes without their releases.
func (s simulation) plain() []message.Change {
	changes := make([]message.Change, 0, len(s.changes))
	for _, c := range s.changes {
		changes = append(changes, c.Change)
	}
	return changes
}

// removed returns the names of the packages that would be removed.
func (s simulation) removed() []string {
	var names []string
	for _, c := range s.changes {
		if c.To == "" {
			names = append(names, c.Name)
		}
	}
	return names
}

var (
	// installLine is such as "Inst perl [5.36.0-7] (5.36.0-8 Debian:12.11/stable [amd64]) [perl-base:amd64 ]".
	installLine = text.Pattern(`^Inst (\S+)(?: \[([^][\s]+)\])? \((\S+)(?: (.*?))? \[[a-z0-9-]+\]\)(?: \[[^]]*\])*$`)
	// removeLine is such as "Remv libc-old [2.1] [other:amd64 ]".
	removeLine = text.Pattern(`^(?:Remv|Purg) (\S+) \[([^][\s]+)\](?: \[[^]]*\])*$`)
	configure  = text.Pattern(`^Conf (\S+) \(.*\)(?: \[[^]]*\])*$`)
	// summaryLine is such as "5 upgraded, 1 newly installed, 1 to remove and 1 not
	// upgraded."; downgraded and reinstalled are named only when there are such.
	summaryLine = text.Pattern(`^(\d+) upgraded, (\d+) newly installed, (?:(\d+) reinstalled, )?(?:(\d+) downgraded, )?(\d+) to remove and (\d+) not upgraded\.$`)
)

const (
	keptHeading     = "The following packages have been kept back:"
	deferredHeading = "The following upgrades have been deferred due to phasing:"
)

// parseSimulation reads the output of apt-get --simulate. It is strict: a line that
// begins like a change and is none, or a number of changes that apt's own summary
// does not confirm, is an error. So an output that was cut is no shorter plan.
func parseSimulation(printed string) (simulation, error) {
	p := parser{seen: map[string]bool{}}
	for line := range strings.Lines(printed) {
		if err := p.line(strings.TrimRight(line, "\r\n")); err != nil {
			return simulation{}, err
		}
	}
	return p.finish()
}

type parser struct {
	simulation
	heading string
	seen    map[string]bool
	// summary are the numbers of the summary, nil before it.
	summary            []string
	installs, removals int
}

func (p *parser) line(line string) error {
	word, _, _ := strings.Cut(line, " ")
	switch {
	case strings.HasPrefix(line, "  ") && p.heading != "":
		p.list(strings.Fields(line))
		return nil
	case word == "Inst" || word == "Remv" || word == "Purg":
		return p.change(line)
	case word == "Conf" && !configure().MatchString(line):
		return fmt.Errorf("apt-get printed %.200q, which is not a configuration of a package", line)
	}
	p.heading = ""
	if line == keptHeading || line == deferredHeading {
		p.heading = line
	}
	if found := summaryLine().FindStringSubmatch(line); found != nil {
		if p.summary != nil {
			return errors.New("apt-get printed two summaries")
		}
		p.summary = found[1:]
	}
	return nil
}

// list takes names from a list below a heading.
func (p *parser) list(names []string) {
	if p.heading == deferredHeading {
		p.deferred = append(p.deferred, names...)
		return
	}
	p.kept = append(p.kept, names...)
}

func (p *parser) change(line string) error {
	c := simulated{}
	if found := removeLine().FindStringSubmatch(line); found != nil {
		c.Name, c.From = found[1], found[2]
		p.removals++
	} else if found := installLine().FindStringSubmatch(line); found != nil {
		c.Name, c.From, c.To, c.releases = found[1], found[2], found[3], found[4]
		p.installs++
	} else {
		return fmt.Errorf("apt-get printed %.200q, which is not a change of a package", line)
	}
	if p.seen[c.Name] {
		return fmt.Errorf("apt-get changes %s twice", c.Name)
	}
	p.seen[c.Name] = true
	if c.From == c.To {
		return nil // A reinstallation changes no version.
	}
	p.changes = append(p.changes, c)
	return nil
}

func (p *parser) finish() (simulation, error) {
	if p.summary == nil {
		return simulation{}, errors.New("apt-get printed no summary, such as \"0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\"")
	}
	counts := make([]int, len(p.summary))
	for i, text := range p.summary {
		counts[i], _ = strconv.Atoi(text) // Digits or nothing.
	}
	if installs := counts[0] + counts[1] + counts[2] + counts[3]; installs != p.installs || counts[4] != p.removals {
		return simulation{}, fmt.Errorf("apt-get printed %d packages to install and %d to remove, and its summary says %d and %d",
			p.installs, p.removals, installs, counts[4])
	}
	return p.simulation, nil
}
