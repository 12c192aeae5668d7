package oracle

import (
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// outputsOf are the sealed outputs of the step of a stage.
type outputsOf struct{ stage, sealed string }

// standing returns the outputs of the steps that are done before a stage of a run begins: of the runs on which
// it goes on, or that it rolls back, then of its own. Those of a step that it has undone are gone.
func (p *run) standing(stage int) []outputsOf {
	all := slices.Clone(p.outputs)
	if p.reached != nil && p.rollsBack.IsZero() {
		for _, s := range p.reached.Stages {
			if s.Outputs != nil {
				all = append(all, outputsOf{s.Name, s.Outputs.Sealed})
			}
		}
	}
	for n := range p.stages[:stage] {
		switch s := &p.stages[n]; {
		case s.doing.done && s.Undo:
			all = without(all, s.Name)
		case s.doing.sealed != "":
			all = append(all, outputsOf{s.Name, s.doing.sealed})
		}
	}
	return all
}

func without(all []outputsOf, stage string) []outputsOf {
	return slices.DeleteFunc(all, func(g outputsOf) bool { return g.stage == stage })
}

// standing returns the outputs of the steps that some runs have done and no run has undone.
func (d *doneBy) standing(runs message.Interval) (all []outputsOf) {
	for _, id := range slices.Sorted(maps.Keys(d.runs)) {
		if !runs.Has(id) {
			continue
		}
		for _, given := range d.runs[id].outputs {
			all = append(without(all, given.stage), given)
		}
		for stage, by := range d.undone {
			if by >= id { // Else it was done again since.
				all = without(all, stage)
			}
		}
	}
	return all
}

// outputsBefore returns the outputs that are there when a stage of a run begins. If it undoes a step, those
// of this step win over others with their names.
func (o *Oracle) outputsBefore(p *run, stage int) map[string]string {
	all, own := map[string]string{}, map[string]string{}
	for _, given := range p.standing(stage) {
		values := o.Opened(given.sealed)
		maps.Copy(all, values)
		if s := &p.stages[stage]; s.Undo && s.Name == given.stage {
			own = values
		}
	}
	maps.Copy(all, own)
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

// StepSees judges that a step which is run now sees the outputs of the steps before it, and no others; and
// that an undo sees those of its own step besides (invariant 13).
func (o *Oracle) StepSees(key message.Key, got map[string]string) {
	p := o.byID(key.Run)
	if p == nil || !key.Kind.OfStage() {
		return
	}
	n := slices.IndexFunc(p.stages, func(s stage) bool { return s.Name == key.Stage })
	if n < 0 || !p.stages[n].doing.underWay || p.stages[n].doing.attempt != key.Attempt {
		return // It is late.
	}
	if want := o.outputsBefore(p, n); !maps.Equal(got, want) {
		o.violated("invariant 13: %s %s of run %d sees the outputs %v, and the steps before it gave %v", key.Kind, key.Stage, key.Run, got, want)
	}
	switch {
	case len(got) == 0:
	case key.Kind == message.Undo:
		o.count("undos that see outputs")
	case !p.rollsBack.IsZero():
		o.count("steps that see outputs in the rollback of a rollback")
	default:
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
