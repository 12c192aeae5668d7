package oracle

import (
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// ReadsNone notes that no worker of a machine carries out releases.
func (o *Oracle) ReadsNone(host string) { o.machines[host].readsNone = true }

// releaseOf is the release that an opening pins, by name and digest; empty for none.
func releaseOf(e message.Opened) string {
	if e.Release == nil {
		return ""
	}
	return e.Release.Name + " " + e.Release.Digest
}

// opensRelease judges the release with which a run is opened (invariant 16): its writer does not know
// it to be withdrawn, and each member carries out releases.
func (o *Oracle) opensRelease(r message.Decoded, e message.Opened) {
	release := releaseOf(e)
	if release == "" {
		return
	}
	o.count("runs opened with a release")
	o.notWithdrawn("is opened with", r, release)
	for _, name := range e.Members {
		if t := o.machines[name]; t != nil && t.readsNone {
			o.violated("invariant 16: the run opened by record %d has release %s and %s as a member, whose worker carries out none", r.Seq, release, name)
		}
	}
}

// asksRelease judges the release of a command (invariant 16): prepare names that with which the run was
// opened, and no host is prepared or upgraded to one that the writer knows to be withdrawn.
func (o *Oracle) asksRelease(r message.Decoded, c message.Command) {
	if c.Action == message.Prepare && r.Release != o.run.release {
		o.violated("invariant 16: prepare %d names release %q, and the run was opened with %q", r.Seq, r.Release, o.run.release)
	}
	if c.Action != message.Reboot {
		o.notWithdrawn("asks for "+string(c.Action)+" to", r, o.run.release)
	}
}

// notWithdrawn judges that the writer of a record does not know a release to be withdrawn.
func (o *Oracle) notWithdrawn(what string, r message.Decoded, release string) {
	if release != "" && slices.Contains(o.withdrawn, release) {
		o.violated("invariant 16: record %d %s release %s, which is withdrawn", r.Seq, what, release)
	}
}

// installs judges that a machine acts by the release with which its run was opened, and by no other
// (invariant 16).
func (o *Oracle) installs(what, host string, run uint64, release string) {
	pinned, known := o.pinned[run]
	if known && pinned != release {
		o.violated("invariant 16: %s %s run %d with release %q, and the run was opened with %q", host, what, run, release, pinned)
	}
	if known && release != "" {
		o.count("machines that act by a release")
	}
}

// refuse applies that members plan another version than the others: each that is prepared fails as if
// it could not prepare. If no stage has begun and too few are left, no host may begin.
func (o *Oracle) refuse(e message.Differing, r message.Decoded) {
	p := o.run
	for _, name := range message.Hosts(e) {
		if m := p.member(name); m != nil && m.phase == prepared {
			o.endFailed(m, r.Time)
			o.count("hosts that are refused because their plans differ")
		}
	}
	if len(e.Packages) > 0 {
		o.owe(matter{kind: newsDiffering, run: p.key()})
	}
	begun := slices.ContainsFunc(p.stages, func(s stage) bool { return s.begun })
	if len(e.Refused) > 0 && !begun && !p.prepares(p.policy.MinPrepared) {
		p.halted = r.Seq
	}
}

// Has notes that a machine has had a release from the beginning, by name and digest.
func (o *Oracle) Has(host, release string) { o.machines[host].has[release] = true }

// needsNone judges the record of a window that needed no run (invariant 8): some machine has once had
// its release. Which hosts a run would have had nobody records.
func (o *Oracle) needsNone(r message.Decoded, e message.Missed) {
	if e.Release == "" {
		return
	}
	o.count("windows that need no run")
	for _, t := range o.machines {
		if t.has[e.Release] {
			return
		}
	}
	o.violated("invariant 8: record %d says that all hosts of %q have release %s, and none has ever had it", r.Seq, e.Environment, e.Release)
}
