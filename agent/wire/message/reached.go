package message

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Reached is how far the runs of an environment have come with the stages of their rollout, for the
// next run to go on from there (package run/reached).
type Reached struct {
	// Since is the run that began with the first stage; 0 in the opening of that run.
	Since uint64 `json:"since,omitempty"`
	// Release is the digest of the release to which these runs go; empty if they have none.
	Release string `json:"release,omitempty"`
	// Ended means that only a retry goes on: a run of all hosts has passed the last stage, or these are
	// runs of chosen hosts. The next run of all hosts begins with the first stage.
	Ended bool `json:"ended,omitempty"`
	// Stages are all stages of the rollout as declared, in their order.
	Stages []ReachedStage `json:"stages"`
}

// Closed returns the stage that is the point of no return and when it has begun; a zero time if it has not.
func (r *Reached) Closed() (stage string, at time.Time) {
	if r == nil {
		return "", at
	}
	for _, s := range r.Stages {
		if !s.Closed.IsZero() {
			stage, at = s.Name, s.Closed
		}
	}
	return stage, at
}

// ReachedStage is how far runs have come with one stage.
type ReachedStage struct {
	Name string `json:"name"`
	// Step means that the stage has a step in place of hosts.
	Step bool `json:"step,omitempty"`
	// Run is the last run that has done its step or upgraded hosts of it; 0 while none has.
	Run uint64 `json:"run,omitempty"`
	// Closed is when the stage has begun that is the point of no return; zero for any other stage.
	Closed time.Time `json:"closed,omitzero"`
	// Soaks is its soak, if that was not over when the last of the runs ended and a later stage has to wait
	// for it; nil if none has.
	Soaks *Soak `json:"soaks,omitempty"`
	// Outputs are those of its step, sealed; nil if it has given none.
	Outputs *Outputs `json:"outputs,omitempty"`
	// Done are the hosts of the stage that were upgraded, Left the others.
	Done []string `json:"done,omitempty"`
	Left []string `json:"left,omitempty"`
}

// Soak is the time that has to pass after a stage before the next one begins.
type Soak struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// SetBack returns the soak after the clock of the log was set back to now: it is as long as it was, and has
// begun by now.
func (s Soak) SetBack(now time.Time) Soak {
	return Soak{Since: times.Earlier(s.Since, now), Until: times.Earlier(s.Until, now.Add(s.Until.Sub(s.Since)))}
}

// Stage returns the stage of a name; nil if there is none.
func (r *Reached) Stage(name string) *ReachedStage {
	if r == nil {
		return nil
	}
	if i := slices.IndexFunc(r.Stages, func(s ReachedStage) bool { return s.Name == name }); i >= 0 {
		return &r.Stages[i]
	}
	return nil
}

// check tells what is wrong with what earlier runs have done.
func (r *Reached) check() error {
	if r == nil {
		return nil
	}
	if len(r.Stages) == 0 {
		return errors.New("stages is empty")
	}
	stages, hosts := map[string]bool{}, map[string]bool{}
	for _, s := range r.Stages {
		if err := s.check(hosts); err != nil {
			return fmt.Errorf("stage %q: %w", s.Name, err)
		}
		if stages[s.Name] {
			return fmt.Errorf("stage %q is named twice", s.Name)
		}
		stages[s.Name] = true
		if s.Run != 0 && r.Since == 0 {
			return fmt.Errorf("stage %q: run %d has done something of it, and since is missing", s.Name, s.Run)
		}
	}
	return nil
}

// check tells what is wrong with a stage; hosts are those of the stages before it.
func (s ReachedStage) check(hosts map[string]bool) error {
	switch {
	case s.Name == "":
		return errors.New("name is missing")
	case s.Step && len(s.Done)+len(s.Left) > 0:
		return errors.New("it has a step and hosts; a stage has only one of them")
	case !s.Step && (len(s.Done) > 0) != (s.Run != 0):
		return fmt.Errorf("run %d has upgraded %d hosts of it", s.Run, len(s.Done))
	case s.Soaks != nil && !s.Soaks.Since.Before(s.Soaks.Until):
		return fmt.Errorf("soaks: since %s is not before until %s", s.Soaks.Since.Format(time.RFC3339), s.Soaks.Until.Format(time.RFC3339))
	case s.Outputs != nil && (!s.Step || s.Run == 0):
		return errors.New("it has outputs, and no step that is done")
	}
	for _, host := range slices.Concat(s.Done, s.Left) {
		switch {
		case !names.ValidHost(host):
			return fmt.Errorf("%q is not a host name", host)
		case hosts[host]:
			return fmt.Errorf("%s is named twice", host)
		}
		hosts[host] = true
	}
	return s.Outputs.checkSealed()
}

// checkReached tells what is wrong with where a run goes on and ends: it does no step again.
func (e Opened) checkReached() error {
	if e.Until != "" && e.Reached.Stage(e.Until) == nil {
		return fmt.Errorf("until: %q is no stage of reached", e.Until)
	}
	for _, s := range e.Rollout.Stages {
		if of := e.Reached.Stage(s.Name); e.RollbackOf == 0 && s.Step != nil && of != nil && of.Run != 0 {
			return fmt.Errorf("reached: the step of stage %q is done since run %d", s.Name, of.Run)
		}
	}
	if err := e.Reached.check(); err != nil {
		return fmt.Errorf("reached: %w", err)
	}
	return nil
}
