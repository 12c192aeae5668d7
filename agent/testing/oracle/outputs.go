package oracle

import (
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// outputsBefore returns the outputs of the steps that are done before a stage of a run begins: of the runs
// on which it goes on, then of its own.
func (o *Oracle) outputsBefore(p *run, stage int) map[string]string {
	all := map[string]string{}
	if p.reached != nil {
		for _, s := range p.reached.Stages {
			if s.Outputs != nil {
				maps.Copy(all, o.Opened(s.Outputs.Sealed))
			}
		}
	}
	for n := range p.stages[:stage] {
		if sealed := p.stages[n].doing.sealed; sealed != "" {
			maps.Copy(all, o.Opened(sealed))
		}
	}
	return all
}

// ScriptSees judges that a script which upgrades a host, now, sees the outputs of the steps before it, and
// no others (invariant 13).
func (o *Oracle) ScriptSees(host string, id uint64, got map[string]string) {
	p := o.byID(id)
	if p == nil || !p.rollsBack.IsZero() {
		return
	}
	m := p.member(host)
	if m == nil || !m.left() || m.upgrade == 0 { // The run does not wait for it: steps after it may be done.
		return
	}
	if want := o.outputsBefore(p, m.stage); !maps.Equal(got, want) {
		o.violated("invariant 13: the script of %s in run %d sees the outputs %v, and the steps before it gave %v", host, id, got, want)
	}
	if len(got) == 0 {
		return
	}
	o.count("scripts of hosts that see outputs")
	if len(o.outputsBefore(p, 0)) > 0 {
		o.count("scripts of hosts that see outputs of earlier runs")
	}
}

// StepSees judges that a step which is run now sees the outputs of the steps before it, and no others
// (invariant 13).
func (o *Oracle) StepSees(key message.Key, got map[string]string) {
	p := o.byID(key.Run)
	if p == nil || key.Kind != message.Step {
		return
	}
	n := slices.IndexFunc(p.stages, func(s stage) bool { return s.Name == key.Stage })
	if n < 0 || !p.stages[n].doing.underWay || p.stages[n].doing.attempt != key.Attempt {
		return // It is late.
	}
	if want := o.outputsBefore(p, n); !maps.Equal(got, want) {
		o.violated("invariant 13: step %s of run %d sees the outputs %v, and the steps before it gave %v", key.Stage, key.Run, got, want)
	}
	if len(got) > 0 {
		o.count("steps that see outputs")
	}
}

// StepGave notes what a step gave where it was run; it may be run more than once.
func (o *Oracle) StepGave(key message.Key, values map[string]string) {
	if o.gave == nil {
		o.gave = map[message.Key][]map[string]string{}
	}
	o.gave[key] = append(o.gave[key], values)
}

// judgeOutputs judges that a step which is done has given what it was to give, and what it gave where it was
// run (invariant 13).
func (o *Oracle) judgeOutputs(t message.Outcome, s *stage, r message.Decoded) {
	if o.gave == nil || t.Kind != message.Step || !t.OK {
		return
	}
	gives := slices.Sorted(slices.Values(s.Step.Gives))
	switch {
	case t.Outputs == nil && len(gives) == 0:
	case t.Outputs == nil || !slices.Equal(t.Outputs.Names, gives):
		o.violated("invariant 13: step %s of run %d is done by record %d with the outputs %+v, and gives %v", t.Stage, t.Run, r.Seq, t.Outputs, gives)
	case o.isByzantine(t.Host):
	case !slices.ContainsFunc(o.gave[t.Key()], func(values map[string]string) bool {
		return maps.Equal(values, o.Opened(t.Outputs.Sealed))
	}):
		o.violated("invariant 13: step %s of run %d is done by record %d with outputs that it has not given", t.Stage, t.Run, r.Seq)
	}
}

func (o *Oracle) isByzantine(host string) bool {
	m := o.machines[host]
	return m != nil && m.byzantine
}
