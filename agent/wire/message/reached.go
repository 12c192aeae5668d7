package message

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Reached is how far the runs of an environment have come with the stages of their rollout, for the
// next run to go on from there (package run/reached).
type Reached struct {
	// Since is the run that began with the first stage; 0 in the opening of that run.
	Since uint64 `json:"since,omitempty"`
	// Release is the digest of the release to which these runs go; empty if they have none.
	Release string `json:"release,omitempty"`
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
	// Outputs are those of its step, sealed; nil if it has given none.
	Outputs *Outputs `json:"outputs,omitempty"`
	// Done are the hosts of the stage that were upgraded, Left the others.
	Done []string `json:"done,omitempty"`
	Left []string `json:"left,omitempty"`
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
