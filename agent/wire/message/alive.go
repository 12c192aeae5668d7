package message

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Heartbeat is how often a worker says that it is alive, and Silence how long
// none may be heard before its host counts as unreachable. What a site does
// while nothing happens is to hear heartbeats: those of 10,000 hosts are to
// cost it no more than 2 % of one core (issue 4).
const (
	Heartbeat = time.Minute
	Silence   = 5 * Heartbeat / 2
)

// beatSlot is what heartbeats are aligned to.
const beatSlot = 5 * time.Second

// UntilBeat is the wait at a time until a worker says again that it is alive:
// about Heartbeat, so that it falls on a multiple of five seconds. A site then
// wakes for many hosts at once instead of for each, which is most of what a
// heartbeat costs it.
func UntilBeat(now time.Time) time.Duration {
	// What a clock shows counts here, not how long it has been running.
	return now.Round(0).Add(Heartbeat).Truncate(beatSlot).Sub(now.Round(0))
}

// Alive is what a worker tells of itself, outside of the log, at its start and
// at every heartbeat.
type Alive struct {
	// Application is the worker application that the host is known under.
	Application string `json:"application"`
	// Protocol is the newest protocol that the worker speaks (package format). The
	// client of the log sets it.
	Protocol int `json:"protocol"`
	// AgentVersion is the version of the worker's program.
	AgentVersion string `json:"agent-version,omitempty"`
	// Worker identifies the worker among those of its host: what its
	// state directory was named when it was made.
	Worker string `json:"worker,omitempty"`
	// Role and Labels are what a rollout may choose hosts by.
	Role   string            `json:"role,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Seen is the position of the host's journal; nil before its first command.
	Seen *Position `json:"seen,omitempty"`
	// At is the time by the clock of the host; zero when the worker does not tell it.
	At time.Time `json:"at,omitzero"`
	// RolledBack are versions that the machine gave up by itself.
	RolledBack []RolledBackVersion `json:"rolled-back,omitempty"`
	// Busy says why the host is not to be upgraded now; nil while it may be.
	Busy *NotNow `json:"busy,omitempty"`
	// Changes is how many packages an upgrade that begins now would change; nil while the
	// worker does not know. Release is the digest of the release that this upgrade installs; empty
	// if it installs the newest that the host finds.
	Changes *int   `json:"changes,omitempty"`
	Release string `json:"release,omitempty"`
	// Releases are the kinds of releases that the host carries out; none for an older worker, which
	// would install something else.
	Releases []release.Kind `json:"releases,omitempty"`
	// Rollbacks tells that the worker can roll back a run; false for an older one, which would upgrade
	// the host instead.
	Rollbacks bool `json:"rollbacks,omitempty"`
	SelfReport
}

// RolledBackVersion is a version that the machine of a host has started, given up, and
// gone back from by itself.
type RolledBackVersion struct {
	Version string `json:"version"`
	// Running is the version that it went back to, At when that was noticed.
	Running string    `json:"running"`
	At      time.Time `json:"at"`
}

// maxRolledBack is of how many versions a heartbeat tells.
const maxRolledBack = 20

// SelfReport is what a host has and lacks for a run, as its worker finds it. It
// decides nothing: an operator learns before a run what would fail in it.
type SelfReport struct {
	// Scripts are the scripts for checks and hooks that the host has; nil when the
	// worker does not say.
	Scripts []string `json:"scripts,omitzero"`
	// Lacks says what the strategy lacks.
	Lacks []string `json:"lacks,omitempty"`
	// ActionLimitSeconds is after how long the host itself ends a prepare or an upgrade; 0
	// when the worker does not say.
	ActionLimitSeconds int `json:"action-limit-seconds,omitempty"`
	// Strategy is how the host is upgraded.
	Strategy string `json:"strategy,omitempty"`
}

// The bounds of a SelfReport, which travels with each heartbeat.
const (
	// MaxScripts is how many scripts are told of, MaxScriptsText how long their names
	// may be together, in bytes. A worker with more does not say which it has.
	MaxScripts     = 64
	MaxScriptsText = 4096
	// maxLacks is how many lacks are told of.
	maxLacks = 10
	// maxActionLimitSeconds is a year: no action takes as long.
	maxActionLimitSeconds = 366 * 24 * 60 * 60
)

// NewSelfReport is what a worker tells of the scripts that it has and of the error
// that its strategy found.
func NewSelfReport(scripts []string, lacks error) SelfReport {
	var report SelfReport
	if fits(scripts) {
		report.Scripts = append([]string{}, scripts...)
	}
	if lacks == nil {
		return report
	}
	for line := range strings.Lines(lacks.Error()) {
		if len(report.Lacks) < maxLacks {
			report.Lacks = append(report.Lacks, CleanText(strings.TrimSpace(line)))
		}
	}
	return report
}

// fits reports whether so many scripts may be told of.
func fits(scripts []string) bool {
	return len(scripts) <= MaxScripts && len(strings.Join(scripts, "")) <= MaxScriptsText
}

// clean bounds what a worker says. It is for people and for comparing names.
func (r *SelfReport) clean() error {
	if !fits(r.Scripts) {
		return fmt.Errorf("%d scripts are too many; use at most %d, whose names have at most %d bytes together", len(r.Scripts), MaxScripts, MaxScriptsText)
	}
	for i, name := range r.Scripts {
		r.Scripts[i] = CleanText(name)
	}
	r.ActionLimitSeconds = max(0, min(r.ActionLimitSeconds, maxActionLimitSeconds))
	r.Strategy = text.Cut(CleanText(r.Strategy), maxVersion, "")
	r.Lacks = r.Lacks[:min(len(r.Lacks), maxLacks)]
	for i, lack := range r.Lacks {
		r.Lacks[i] = CleanText(lack)
	}
	return nil
}

// Encode returns the JSON body.
func (a Alive) Encode() []byte { return encode(a) }

// DecodeAlive reads the JSON body.
func DecodeAlive(data []byte) (Alive, error) {
	var alive Alive
	if err := json.Unmarshal(data, &alive); err != nil {
		return Alive{}, fmt.Errorf("cannot read heartbeat: %w", err)
	}
	if !names.Valid(alive.Application) {
		return Alive{}, fmt.Errorf("cannot read heartbeat: application %.100q is no name; use at most %d of a-z, 0-9 and -, with no - at either end",
			alive.Application, names.MaxLength)
	}
	if err := alive.Seen.check(); err != nil {
		return Alive{}, fmt.Errorf("cannot read heartbeat: %w", err)
	}
	alive.RolledBack = alive.RolledBack[max(0, len(alive.RolledBack)-maxRolledBack):]
	for i, r := range alive.RolledBack {
		alive.RolledBack[i].Version, alive.RolledBack[i].Running = text.Cut(CleanText(r.Version), MaxPlanName, ""), text.Cut(CleanText(r.Running), MaxPlanName, "")
	}
	alive.Busy = alive.Busy.clean()
	slices.Sort(alive.Releases)
	alive.Releases = slices.DeleteFunc(slices.Compact(alive.Releases), func(kind release.Kind) bool { return !kind.Known() })
	if !release.ValidDigest(alive.Release) {
		alive.Release = ""
	}
	alive.AgentVersion = text.Cut(CleanText(alive.AgentVersion), maxVersion, "")
	alive.Worker = text.Cut(CleanText(alive.Worker), names.MaxLength, "")
	alive.Role = text.Cut(CleanText(alive.Role), names.MaxLength, "")
	if len(alive.Labels) > names.MaxLabels {
		return Alive{}, fmt.Errorf("cannot read heartbeat: %d labels are too many; use at most %d", len(alive.Labels), names.MaxLabels)
	}
	for key, value := range alive.Labels {
		if !names.ValidLabel(key) || value != "" && !names.ValidLabel(value) {
			return Alive{}, fmt.Errorf("cannot read heartbeat: label %.100q=%.100q; use at most %d of letters, digits, \"-\", \"_\", \".\" and \"/\"", key, value, names.MaxLength)
		}
	}
	if err := alive.clean(); err != nil {
		return Alive{}, fmt.Errorf("cannot read heartbeat: %w", err)
	}
	return alive, nil
}

const (
	// maxVersion bounds the version that a worker says it has, in bytes.
	maxVersion = 100
)

// Progress is word of how a host's work goes on, for people.
type Progress struct {
	// Run is the run that the work belongs to.
	Run uint64 `json:"run"`
	// Percent is 0 to 100, or negative when unknown.
	Percent int    `json:"percent"`
	Message string `json:"message"`
	// Failing is why the tries of the present action fail; empty unless several have failed, and once
	// one has come further than those.
	Failing string `json:"failing,omitempty"`
}

// Encode returns the JSON body.
func (p Progress) Encode() []byte { return encode(p) }

// DecodeProgress reads the JSON body.
func DecodeProgress(data []byte) (Progress, error) {
	var progress Progress
	if err := json.Unmarshal(data, &progress); err != nil {
		return Progress{}, fmt.Errorf("cannot read progress: %w", err)
	}
	progress.Percent = min(progress.Percent, 100)
	progress.Message, progress.Failing = CleanText(progress.Message), CleanText(progress.Failing)
	return progress, nil
}
