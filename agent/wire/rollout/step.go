package rollout

import (
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// Step is something that is done once, in its place among the stages: the hosts of the stages
// before it are done, and those of the stages after it have yet to begin.
type Step struct {
	// Do is the hook that does it. With on "host" it is run on the one host that Match chooses.
	// It may be run more than once, because its outcome may be lost.
	Do *Hook `json:"do,omitempty"`
	// Undo is the hook that undoes Do.
	Undo *Hook `json:"undo,omitempty"`
	// Match chooses the host when the step begins: the first, by name, that is present and
	// matches.
	Match *Match `json:"match,omitempty"`
	// Gives are the names of the outputs of Do. They are kept sealed, and handed to the steps and
	// hosts that come after it.
	Gives []string `json:"gives,omitempty"`
}

// maxGives is how many outputs a step may have, MaxOutputs how long they may be together, in
// bytes.
const (
	maxGives   = 20
	MaxOutputs = 64 << 10
)

// outputPattern is that of the name of a variable of a shell.
var outputPattern = text.Pattern(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// ValidOutput reports whether an output of a step may have a name.
func ValidOutput(name string) bool { return outputPattern().MatchString(name) }

// OnHost reports whether the step is done on a host, not at the site.
func (s Step) OnHost() bool { return s.Do != nil && s.Do.On != OnSite }

func (s Step) inspect(i *inspector, field string) {
	i.members(field, s)
	if s.Do == nil {
		i.add(field+".do", "", "it is missing; give the hook that does the step")
		return
	}
	var onHost []string
	if s.OnHost() {
		onHost = append(onHost, "do.on")
	}
	if s.Undo != nil && s.Undo.On != OnSite {
		onHost = append(onHost, "undo.on")
	}
	switch {
	case len(onHost) > 0 && s.Match == nil:
		i.add(field+".match", "", fmt.Sprintf(`it is missing; give match to choose the host of the hook, or set %s to "site"`, strings.Join(onHost, " and ")))
	case len(onHost) == 0 && s.Match != nil:
		i.add(field+".match", "", `it chooses a host, and no hook of the step runs on one; leave it out, or set do.on to "host"`)
	}
	i.ofNoHost(field+".do", s.Do)
	i.ofNoHost(field+".undo", s.Undo)
	i.each(field+".gives", s.Gives, maxGives, ValidOutput, `is not the name of an output; use 1 to 63 letters, digits and "_", with no digit at the beginning`)
	if len(s.Gives) > 0 && s.Do.Type == HTTP {
		i.add(field+".gives", "", "only a script has outputs; set do.type to exec, or leave gives out")
	}
}

// ofNoHost notes a hook at the site that names a host.
func (i *inspector) ofNoHost(field string, h *Hook) {
	if h != nil && h.On == OnSite && strings.Contains(h.URL, "{host}") {
		i.wrong(field+".url", h.URL, "has {host}, and a step at the site has no host; leave {host} out")
	}
}

// steps checks what the steps of all stages have to do with one another.
func (i *inspector) steps(stages []Stage) {
	noReturn, givers, hosts := -1, map[string]int{}, len(stages) == 0
	for n, s := range stages {
		path := fmt.Sprintf("stages[%d]", n)
		if s.PointOfNoReturn && noReturn >= 0 {
			i.add(path+".point-of-no-return", "", fmt.Sprintf("stages[%d] is the point of no return already; there is only one", noReturn))
		} else if s.PointOfNoReturn {
			noReturn = n
		}
		if s.Step == nil {
			hosts = true
			continue
		}
		if s.Match != nil {
			i.add(path+".step", "", "match is given, too; a stage has hosts or a step, so give only one of them")
		}
		if s.MaxUnavailable != "" && s.MaxUnavailable != defaultUnavailable {
			i.wrong(path+".max-unavailable", string(s.MaxUnavailable), "is for a stage with hosts, and this one has a step; leave it out")
		}
		for k, name := range s.Step.Gives {
			if other, given := givers[name]; given && other != n {
				i.wrong(fmt.Sprintf("%s.step.gives[%d]", path, k), name, fmt.Sprintf("is an output of stages[%d] already; give each output its own name", other))
			}
			givers[name] = n
		}
	}
	if !hosts {
		i.add("stages", "", "all of them have a step, so no host is upgraded; add a stage with match, or without both at the end")
	}
}

// defaultUnavailable is the default of max-unavailable.
const defaultUnavailable Count = "1"
