package message

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Task is something to be run beside the log: a list of checks, or a hook. It
// may be run more than once, also at the same time as itself, so whatever it
// runs must bear that; the controller asks again until it has the outcome.
type Task struct {
	// Run, Kind, Host, Stage and Attempt together identify the task. Run is the sequence of the
	// event "opened" for Start, because the run has no id yet, and 0 for one that is of no run.
	Run  uint64   `json:"run"`
	Kind TaskKind `json:"kind"`
	Host string   `json:"host,omitempty"`
	// Stage is the stage of a step.
	Stage   string `json:"stage,omitempty"`
	Attempt int    `json:"attempt"`
	// Incarnation is the process of the worker that is asked; empty for any, which only an older
	// site sends. A worker that has been started again remembers no task: it would drain the
	// host once more for a task that comes late (seed 6015651).
	Incarnation string `json:"incarnation,omitempty"`
	// Environment is the environment of a task at the site; empty for the default one. It stays
	// there.
	Environment string `json:"-"`
	// Checks are run one after the other until one fails, those of Start all of them; or Hook is
	// run.
	Checks []rollout.Check `json:"checks,omitempty"`
	Hook   *rollout.Hook   `json:"hook,omitempty"`
	// Gives are the names of the outputs of a step. Outputs are those of the steps before it, by
	// name; a task has them only on its way to where it is run.
	Gives   []string          `json:"gives,omitempty"`
	Outputs map[string]string `json:"outputs,omitempty"`
}

// Key identifies a task among those of all runs.
type Key struct {
	Run     uint64
	Kind    TaskKind
	Host    string
	Stage   string
	Attempt int
}

// Key returns the task's.
func (t Task) Key() Key { return Key{t.Run, t.Kind, t.Host, t.Stage, t.Attempt} }

// OfNoRun reports whether the task is of no run: somebody asks how the hosts are.
func (t Task) OfNoRun() bool { return t.Run == 0 && t.Kind == Start }

// Present is what a site knows of a host, for the checks that it asks.
type Present struct {
	Name string
	// Online says that the host is heard of.
	Online bool
	// Versions are what the host has reported last, by package.
	Versions map[string]string
}

// OnSite reports whether the task is run at the site, not on a host.
func (t Task) OnSite() bool {
	return t.Host == "" && t.Kind.OfRun() || t.Hook != nil && t.Hook.On == rollout.OnSite
}

// SiteTasks is how many hooks of one tenant are run at the site at once. The
// others wait for their turn.
const SiteTasks = 64

// taskGrace is added to the time that a task may take, for what it takes to read
// the log to its end, to ask for the task and to hear of its outcome.
const taskGrace = 30 * time.Second

// Limit is the longest time from when a task is wanted to its outcome.
func (t Task) Limit() time.Duration {
	limit := taskGrace
	for _, c := range t.Checks {
		if t.Kind == Start { // They run all at once.
			limit = max(limit, taskGrace+c.Timeout.Duration())
		} else {
			limit += c.Timeout.Duration()
		}
	}
	if h := t.Hook; h != nil {
		try, pause := h.Timeout.Duration(), h.RetryInterval.Duration()
		limit += try
		for range h.Retried() {
			limit += pause + try
		}
	}
	return limit
}

// Encode returns the JSON body.
func (t Task) Encode() []byte { return encode(t) }

// DecodeTask reads the JSON body.
func DecodeTask(data []byte) (Task, error) {
	var t Task
	if err := json.Unmarshal(data, &t); err != nil {
		return Task{}, fmt.Errorf("cannot read task: %w", err)
	}
	switch {
	case !t.Kind.Known():
		return Task{}, fmt.Errorf("cannot read task: kind %q is unknown", t.Kind)
	case t.Run == 0 && t.Kind != Start:
		return Task{}, fmt.Errorf("cannot read task: run is missing")
	case t.Host != "" && !names.ValidHost(t.Host), !t.Kind.mayBeOf(t.Host, t.Hook):
		return Task{}, fmt.Errorf("cannot read task %s: host %q is not a host name", t.Kind, t.Host)
	case t.Kind.OfStage() != (t.Stage != ""):
		return Task{}, fmt.Errorf("cannot read task %s: stage %q is not that of a step", t.Kind, t.Stage)
	}
	return t, nil
}

// Outcome is how a task came out.
type Outcome struct {
	Run     uint64   `json:"run"`
	Kind    TaskKind `json:"kind"`
	Host    string   `json:"host,omitempty"`
	Stage   string   `json:"stage,omitempty"`
	Attempt int      `json:"attempt"`
	OK      bool     `json:"ok"`
	// Text says what failed, or what was seen.
	Text string `json:"text,omitempty"`
	// Outputs are those of a step that has some.
	Outputs *Outputs `json:"outputs,omitempty"`
	// Results are those of the single checks of Start, in their order.
	Results []Checked `json:"results,omitempty"`
}

// Checked is how a single check came out.
type Checked struct {
	OK bool `json:"ok"`
	// Text says what failed; empty when nothing did.
	Text string `json:"text,omitempty"`
}

const (
	// maxChecked is how many checks a task has at most, maxCheckedText bounds the text of each, in
	// bytes.
	maxChecked     = 20
	maxCheckedText = 1 << 10
)

// Checked makes the outcome of a task from those of its checks, in their order: nil for one that
// has passed.
func (t Task) Checked(failed []error) Outcome {
	o := t.Outcome(true, "")
	var texts []string
	for i, err := range failed {
		c := Checked{OK: err == nil}
		if err != nil {
			c.Text = cleanChecked(err.Error())
			texts = append(texts, "check "+t.Checks[i].Name+": "+c.Text)
		}
		o.Results = append(o.Results, c)
	}
	if len(texts) > 0 {
		o.OK, o.Text = false, CleanText(strings.Join(texts, "; "))
	}
	return o
}

func cleanChecked(s string) string { return text.Fit(CleanText(s), maxCheckedText, "…") }

// cleanResults bounds what somebody tells of single checks.
func (o *Outcome) cleanResults() error {
	if len(o.Results) > maxChecked || len(o.Results) > 0 && o.Kind != Start {
		return fmt.Errorf("it has the results of %d checks of %s", len(o.Results), o.Kind)
	}
	for i := range o.Results {
		o.Results[i].Text = cleanChecked(o.Results[i].Text)
	}
	return nil
}

// Key returns that of the outcome's task.
func (o Outcome) Key() Key { return Key{o.Run, o.Kind, o.Host, o.Stage, o.Attempt} }

// Outcome makes the outcome of a task.
func (t Task) Outcome(ok bool, text string) Outcome {
	return Outcome{Run: t.Run, Kind: t.Kind, Host: t.Host, Stage: t.Stage, Attempt: t.Attempt, OK: ok, Text: CleanText(text)}
}

// Encode returns the JSON body.
func (o Outcome) Encode() []byte { return encode(o) }

// DecodeOutcome reads the JSON body.
func DecodeOutcome(data []byte) (Outcome, error) {
	var o Outcome
	if err := json.Unmarshal(data, &o); err != nil {
		return Outcome{}, fmt.Errorf("cannot read outcome: %w", err)
	}
	if !o.Kind.Known() || o.Run == 0 && o.Kind != Start {
		return Outcome{}, fmt.Errorf("cannot read outcome: run %d and kind %q name no task", o.Run, o.Kind)
	}
	if o.Outputs != nil {
		if err := o.Outputs.check(); err != nil {
			return Outcome{}, fmt.Errorf("cannot read outcome: %w", err)
		}
	}
	if err := o.cleanResults(); err != nil {
		return Outcome{}, fmt.Errorf("cannot read outcome: %w", err)
	}
	o.Text = CleanText(o.Text)
	return o, nil
}
