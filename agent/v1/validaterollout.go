package v1

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The limits of a rollout.
const (
	MaxStages = 100
	// MaxSpan is the longest wait or timeout; no run lasts longer (AV-19).
	MaxSpan = 7 * 24 * time.Hour

	maxHosts  = 10_000
	maxLabels = 50
	maxRoles  = 100
)

const notAName = "is not a name; " + NameForm

// Validate returns everything that is wrong with the values, and nothing when
// all is right.
func (r Rollout) Validate() Problems {
	var i inspector
	i.stages(r.Stages)
	i.count("max-failures", r.MaxFailures, 1)
	i.option("on-failure", r.OnFailure, "stop", "pause", "continue")
	i.count("min-prepared", r.MinPrepared, 0)
	i.option("overrun", r.Overrun, "finish-host", "stop")
	i.span("reserve", r.Reserve, 0, MaxSpan)
	i.span("splay", r.Splay, 0, MaxSpan)
	i.match("exempt", r.Exempt)
	i.match("exempt-reboot", r.ExemptReboot)
	if c := r.Checks; c != nil {
		i.checks("checks.before-host", c.BeforeHost)
		i.checks("checks.after-host", c.AfterHost)
		i.checks("checks.fleet", c.Fleet)
	}
	if h := r.Hooks; h != nil {
		i.hook("hooks.drain", h.Drain)
		i.hook("hooks.undrain", h.Undrain)
	}
	if t := r.Timeouts; t != nil {
		i.span("timeouts.prepare", t.Prepare, time.Second, MaxSpan)
		i.span("timeouts.upgrade", t.Upgrade, time.Second, MaxSpan)
		i.span("timeouts.reboot", t.Reboot, time.Second, MaxSpan)
	}
	return i.found
}

func (i *inspector) stages(stages []Stage) {
	if !i.limit("stages", len(stages), MaxStages) {
		return
	}
	first := map[string]int{}
	for n, s := range stages {
		path := fmt.Sprintf("stages[%d]", n)
		other, twice := first[s.Name]
		switch {
		case !ValidName(s.Name):
			i.wrong(path+".name", s.Name, notAName)
		case twice:
			i.wrong(path+".name", s.Name, fmt.Sprintf("is the name of stages[%d] already; give each stage its own", other))
		default:
			first[s.Name] = n
		}
		if s.Match == nil && n < len(stages)-1 {
			i.found = append(i.found, Problem{Field: path + ".match", Message: fmt.Sprintf("it is absent, so that this stage takes all hosts that are left and none are left for stages[%d]; give match, or make this the last stage", n+1)})
		}
		i.match(path+".match", s.Match)
		i.count(path+".max-unavailable", s.MaxUnavailable, 1)
		i.span(path+".soak", s.Soak, 0, MaxSpan)
		i.span(path+".approval-timeout", s.ApprovalTimeout, time.Second, MaxSpan)
	}
}

// match checks which hosts are chosen. One that names nothing is refused: it
// would choose all of them, which nobody can have meant.
func (i *inspector) match(field string, m *Match) {
	if m == nil {
		return
	}
	if len(m.Hosts)+len(m.Labels)+len(m.Roles)+len(m.Applications) == 0 {
		i.found = append(i.found, Problem{Field: field, Value: "{}", Message: "it names no hosts; give hosts, labels, roles or applications, or leave it out"})
	}
	i.each(field+".hosts", m.Hosts, maxHosts, ValidHost, `is not the name of a host; use 1 to 253 letters, digits, "-", "_" and ".", with a letter or digit at both ends`)
	i.labels(field+".labels", m.Labels)
	i.each(field+".roles", m.Roles, maxRoles, validRole, "is not a role; use 1 to 63 printable characters without blanks at the ends")
	i.each(field+".applications", m.Applications, MaxApplications, ValidName, notAName)
}

func (i *inspector) labels(field string, labels map[string]string) {
	const right = `use 1 to 63 letters, digits, "-", "_", "." and "/"`
	if !i.limit(field, len(labels), maxLabels) {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !ValidLabel(key) {
			i.wrong(field, key, "is not the key of a label; "+right)
		} else if value := labels[key]; value != "" && !ValidLabel(value) {
			i.wrong(labelPath(field, key), value, "is not the value of a label; "+right)
		}
	}
}

// labelPath is the path of a label, as package document writes it.
func labelPath(field, key string) string {
	if strings.ContainsAny(key, "./") {
		return field + "[" + strconv.Quote(key) + "]"
	}
	return field + "." + key
}
