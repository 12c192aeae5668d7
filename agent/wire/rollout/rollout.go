// Package rollout is how a tenant's hosts are upgraded: in which stages, how
// many at once, with which checks and hooks. A person declares a Rollout, which
// the API carries; a run keeps it as Resolved, which the log carries. Both are
// made of the same types, so that a member is written down once, with its
// default and its bounds in the tags of its field:
//
//	default:"1h"         what an absent member means
//	within:"1s 7d"       the least and the most of a Span or of a number
//	least:"1"            the least of a Count
//	oneof:"stop pause"   what a text may be
//	most:"20"            how many entries a list may have
//
// It decides whether a policy is right and says what is wrong with it. It never
// looks at hosts: package plan applies a rollout to them, package run goes by
// what comes of that.
package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// What a run does once too many of its hosts have failed.
const (
	// Stop finishes the hosts that are in progress and starts no further one.
	Stop = "stop"
	// Pause does the same and waits for somebody to resume the run.
	Pause = "pause"
	// Continue goes on whatever fails.
	Continue = "continue"
)

// Whether hosts that were silent before a run was opened count in it.
const (
	// Skip leaves them out: a dead box does not stop a fleet.
	Skip = "skip"
	// CountAbsent counts them as out of service, and in each percentage.
	CountAbsent = "count"
)

// What happens to hosts that are in progress when a run's time is up.
const (
	// FinishHost waits for them, at most for OverrunLimit, sends them no further
	// command, and undrains them.
	FinishHost = "finish-host"
	// StopHost does not wait for them, but undrains them within OverrunLimit.
	StopHost = "stop"
)

// Rollout is the declared policy of a tenant's runs, the object at
// /v1/config/tenants/{tenant}/os-upgrade/rollout. A member that is absent has its default.
type Rollout struct {
	// Stages are upgraded one after the other; without any, all hosts are one stage. A host
	// is in the first stage that matches it.
	Stages []Stage `json:"stages,omitzero"`
	// MaxFailures is the number of failed hosts at which OnFailure happens. A host that
	// could not prepare is not counted: nothing was done to it. A percentage refers to the
	// hosts that are present and is rounded down, to at least 1.
	MaxFailures Count  `json:"max-failures,omitempty" default:"1" least:"1"`
	OnFailure   string `json:"on-failure,omitempty" default:"stop" oneof:"stop pause continue"`
	// Absent is whether hosts that were silent before the run was opened count as
	// present, and as out of service.
	Absent string `json:"absent,omitempty" default:"skip" oneof:"skip count"`
	// MinPrepared is how many hosts must have prepared before the first is upgraded. A
	// percentage refers to the hosts that are present and is rounded up.
	MinPrepared Count `json:"min-prepared,omitempty" default:"50%" least:"0"`
	// PreparePatience is how long a run waits for the other hosts once MinPrepared are
	// prepared, and a stage for those that are late; never longer than a tenth of the
	// window.
	PreparePatience Span `json:"prepare-patience,omitempty" default:"5m" within:"0s 7d"`
	// Overrun is what happens to hosts that are being upgraded when the time is up.
	Overrun string `json:"overrun,omitempty" default:"finish-host" oneof:"finish-host stop"`
	// OverrunLimit is how long after its time is up a run ends at the latest,
	// whatever its hosts do.
	OverrunLimit Span `json:"overrun-limit,omitempty" default:"15m" within:"0s 7d"`
	// Reserve is how long before the end of its window a run ends.
	Reserve Span `json:"reserve,omitempty" default:"0s" within:"0s 7d"`
	// RetryAfter is how long after the end of a run that touched no host the next one
	// is opened in the same window.
	RetryAfter Span `json:"retry-after,omitempty" default:"15m" within:"1m 7d"`
	// Splay is the time over which the starts of a stage's hosts are spread.
	Splay Span `json:"splay,omitempty" default:"0s" within:"0s 7d"`
	// Paused pauses all runs of the tenant, including the current one.
	Paused bool `json:"paused,omitempty"`
	// FreezeChanges has each run refuse changes of the tenant's configuration, from its first stage to
	// its end.
	FreezeChanges bool `json:"freeze-changes,omitempty"`
	// FleetLock lets hosts that reboot by themselves ask for that by the FleetLock protocol.
	FleetLock bool `json:"fleetlock,omitempty"`
	// Exempt matches hosts that are not upgraded, ExemptReboot hosts that are
	// not rebooted; nil matches none.
	Exempt       *Match    `json:"exempt,omitempty"`
	ExemptReboot *Match    `json:"exempt-reboot,omitempty"`
	Checks       *Checks   `json:"checks,omitempty"`
	Hooks        *Hooks    `json:"hooks,omitempty"`
	Timeouts     *Timeouts `json:"timeouts,omitempty"`
}

// Stage is a group of hosts that is upgraded before the next group, or a step in its place among
// them. It has Match or Step, never both.
type Stage struct {
	Name string `json:"name"`
	// Match selects the hosts; nil means all that are in no earlier stage.
	Match *Match `json:"match,omitempty"`
	// Step is done once in place of hosts; nil for a stage with hosts.
	Step *Step `json:"step,omitempty"`
	// MaxUnavailable is how many of the stage's hosts may be out of service at
	// once. A percentage is rounded down, at least 1.
	MaxUnavailable Count `json:"max-unavailable,omitempty" default:"1" least:"1"`
	// Soak is the wait after the stage's last host or its step, before the next stage.
	Soak Span `json:"soak,omitempty" default:"0s" within:"0s 7d"`
	// Approval makes the stage wait until somebody approves it, for at most
	// ApprovalTimeout.
	Approval        bool `json:"approval,omitempty"`
	ApprovalTimeout Span `json:"approval-timeout,omitempty" default:"1d" within:"1s 7d"`
	// PointOfNoReturn tells that there is no way back once the stage has begun. One stage may
	// have it.
	PointOfNoReturn bool `json:"point-of-no-return,omitempty"`
}

// Match selects the hosts that match every given member. A list matches when one entry
// does, labels when all do.
type Match struct {
	Hosts        []string          `json:"hosts,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Roles        []string          `json:"roles,omitempty"`
	Applications []string          `json:"applications,omitempty"`
}

// Checks tell whether a host, or the fleet, is well. All of a list must pass.
type Checks struct {
	// Start are asked before a run prepares any host: all of them, and all at once.
	Start      []StartCheck `json:"start,omitempty" most:"20"`
	BeforeHost []Check      `json:"before-host,omitempty" most:"20"`
	AfterHost  []Check      `json:"after-host,omitempty" most:"20"`
	// Fleet are run at the site, between hosts.
	Fleet []Check `json:"fleet,omitempty" most:"20"`
}

func (c Checks) inspect(i *inspector, field string) {
	i.members(field, c)
	for n, s := range c.Start {
		s.inspectPlace(i, fmt.Sprintf("%s.start[%d]", field, n))
	}
	i.onHosts(field+".before-host", c.BeforeHost)
	i.onHosts(field+".after-host", c.AfterHost)
}

// Hooks take a host out of service and put it back.
type Hooks struct {
	Drain   *Hook `json:"drain,omitempty"`
	Undrain *Hook `json:"undrain,omitempty"`
}

// Timeouts bound the wait for the reply to each command.
type Timeouts struct {
	Prepare Span `json:"prepare,omitempty" default:"1h" within:"1s 7d"`
	Upgrade Span `json:"upgrade,omitempty" default:"1h" within:"1s 7d"`
	Reboot  Span `json:"reboot,omitempty" default:"15m" within:"1s 7d"`
}

// The limits of a rollout beside those in the tags.
const (
	maxStages       = 100
	maxHosts        = 10_000
	maxRoles        = 100
	maxApplications = 1000
)

const (
	notAName = "is not a name; " + names.Form
	notAHost = `is not the name of a host; use 1 to 253 letters, digits, "-", "_" and ".", with a letter or digit at both ends`
)

// DefaultStage is the name of the one stage of a rollout that declares none.
const DefaultStage = "all"

// WithDefaults returns the rollout with the default in place of each member
// that is absent. It shares no list with r, but for texts that stay as they
// are.
func (r Rollout) WithDefaults() Rollout {
	if len(r.Stages) == 0 {
		r.Stages = []Stage{{Name: DefaultStage}}
	}
	r.AddParts()
	return rewritten(r, setDefault)
}

// Filled returns the rollout with the parts that are absent, and with the default in the tag
// of each other member that is absent. It has no stage and no member of a check or hook that
// depends on the others.
func (r Rollout) Filled() Rollout {
	r.AddParts()
	return rewritten(r, setFallbacks)
}

// Trimmed returns the rollout without what Filled adds.
func (r Rollout) Trimmed() Rollout {
	r = rewritten(r, dropFallbacks)
	if len(r.Stages) == 0 {
		r.Stages = nil
	}
	if r.Checks != nil && len(r.Checks.Start)+len(r.Checks.BeforeHost)+len(r.Checks.AfterHost)+len(r.Checks.Fleet) == 0 {
		r.Checks = nil
	}
	if r.Hooks != nil && *r.Hooks == (Hooks{}) {
		r.Hooks = nil
	}
	if r.Timeouts != nil && *r.Timeouts == (Timeouts{}) {
		r.Timeouts = nil
	}
	return r
}

// AddParts adds the parts that are absent, with nothing in them.
func (r *Rollout) AddParts() {
	if r.Checks == nil {
		r.Checks = &Checks{}
	}
	if r.Hooks == nil {
		r.Hooks = &Hooks{}
	}
	if r.Timeouts == nil {
		r.Timeouts = &Timeouts{}
	}
}

// Canonical returns the rollout with each length of time in the fewest units,
// the one way to spell it. What is absent stays absent, what is wrong as it is.
// It shares no list with r, but for texts that stay as they are.
func (r Rollout) Canonical() Rollout { return rewritten(r, setCanonical) }

// Validate returns everything that is wrong with the values, and nothing when
// all is right.
func (r Rollout) Validate() document.Problems {
	var i inspector
	i.stages(r.Stages)
	i.members("", r)
	return i.found
}

// unreadable returns the first value that means nothing.
func (r Rollout) unreadable() error { return firstUnreadable("", r) }

func (i *inspector) stages(stages []Stage) {
	if !i.limit("stages", len(stages), maxStages) {
		return
	}
	first := map[string]int{}
	for n, s := range stages {
		path := fmt.Sprintf("stages[%d]", n)
		other, twice := first[s.Name]
		switch {
		case !names.Valid(s.Name):
			i.wrong(path+".name", s.Name, notAName)
		case twice:
			i.wrong(path+".name", s.Name, fmt.Sprintf("is the name of stages[%d] already; give each stage its own", other))
		default:
			first[s.Name] = n
		}
		if next := withHosts(stages, n+1); s.Match == nil && s.Step == nil && next >= 0 {
			i.add(path+".match", "", fmt.Sprintf("it is absent, so that this stage takes all hosts that are left and none are left for stages[%d]; give match, or make this the last stage", next))
		}
		i.members(path, s)
	}
	i.steps(stages)
}

// withHosts returns the first stage from one on that has no step; -1 if there is none.
func withHosts(stages []Stage, from int) int {
	for n := from; n < len(stages); n++ {
		if stages[n].Step == nil {
			return n
		}
	}
	return -1
}

// Validate returns everything that is wrong with a match that selects hosts; field is its path.
func (m Match) Validate(field string) document.Problems {
	var i inspector
	m.inspect(&i, field)
	return i.found
}

// inspect refuses a match that names nothing: it would choose all hosts, which
// nobody can have meant.
func (m Match) inspect(i *inspector, field string) {
	if len(m.Hosts)+len(m.Labels)+len(m.Roles)+len(m.Applications) == 0 {
		i.add(field, "{}", "it names no hosts; give hosts, labels, roles or applications, or leave it out")
	}
	i.each(field+".hosts", m.Hosts, maxHosts, names.ValidHost, notAHost)
	i.labels(field+".labels", m.Labels)
	i.each(field+".roles", m.Roles, maxRoles, ValidRole, "is not a role; "+RoleForm)
	i.each(field+".applications", m.Applications, maxApplications, names.Valid, notAName)
}

// RoleForm and LabelForm are the forms of a role, and of the key and the value of a label, in words.
const (
	RoleForm  = "use 1 to 63 printable characters without blanks at the ends"
	LabelForm = `use 1 to 63 letters, digits, "-", "_", "." and "/"`
)

// ValidRole reports whether a worker can have said that this is its role.
func ValidRole(text string) bool {
	return strings.TrimSpace(text) == text && text != "" && len(text) <= names.MaxLength && names.Printable(text)
}

func (i *inspector) labels(field string, labels map[string]string) {
	if !i.limit(field, len(labels), names.MaxLabels) {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !names.ValidLabel(key) {
			i.wrong(field, key, "is not the key of a label; "+LabelForm)
		} else if value := labels[key]; value != "" && !names.ValidLabel(value) {
			i.wrong(LabelPath(field, key), value, "is not the value of a label; "+LabelForm)
		}
	}
}

// LabelPath is the path of a label, as package document writes it.
func LabelPath(field, key string) string {
	if strings.ContainsAny(key, "./") {
		return field + "[" + strconv.Quote(key) + "]"
	}
	return field + "." + key
}
