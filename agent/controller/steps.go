package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// stepHost returns what chooses the host of a step: among the hosts of an environment that are online,
// and whose workers know steps.
func (s *state) stepHost(env *environment) func(*rollout.Step) string {
	return func(step *rollout.Step) string {
		fleet := slices.DeleteFunc(s.fleet(env, nil), func(h plan.Host) bool { return s.hosts.known[h.Name].Protocol < format.StepProtocol })
		host, _ := plan.HostOf(step, fleet)
		return host
	}
}

// errNoSecrets means that the site has nothing that could seal outputs.
var errNoSecrets = errors.New("this site keeps no secrets")

// sealed returns the outcome of a step as the log keeps it: with the names of its outputs and their
// values sealed. A step that does not give what it should has failed.
func (d *dispatching) sealed(o message.Outcome, gives []string) message.Outcome {
	var values map[string]string
	if o.Outputs != nil {
		values = o.Outputs.Values
	}
	o.Outputs = nil
	if !o.OK {
		return o
	}
	err := message.CheckOutputs(values, gives)
	if err == nil && len(gives) > 0 {
		o.Outputs, err = d.seal(o.Stage, values)
	}
	if err != nil {
		o.OK, o.Text, o.Outputs = false, message.CleanText(err.Error()), nil
	}
	return o
}

// seal seals the outputs of a step.
func (d *dispatching) seal(stage string, values map[string]string) (*message.Outputs, error) {
	if d.Secrets == nil {
		return nil, fmt.Errorf("cannot seal its outputs: %w", errNoSecrets)
	}
	body, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	sealed, err := d.Secrets.Seal(body, message.OutputsPurpose(d.Tenant, stage))
	if err != nil {
		return nil, fmt.Errorf("cannot seal its outputs: %w", err)
	}
	return &message.Outputs{Names: slices.Sorted(maps.Keys(values)), Sealed: sealed}, nil
}

// open opens the outputs of the steps that a run has done.
func (d *dispatching) open(given []message.StepOutputs) (map[string]string, error) {
	var all map[string]string
	for _, g := range given {
		if d.Secrets == nil {
			return nil, errNoSecrets
		}
		body, err := d.Secrets.Open(g.Sealed, message.OutputsPurpose(d.Tenant, g.Stage))
		if err == nil {
			err = json.Unmarshal(body, &all)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot open the outputs of step %s: %w", g.Stage, err)
		}
	}
	return all, nil
}
