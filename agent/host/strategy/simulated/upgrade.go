package simulated

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// upgrade is the record of the last upgrade, written before its effect. The line
// in effects.log is the effect: if the line exists the upgrade has happened,
// whatever a crash left undone.
type upgrade struct {
	Run    uint64 `json:"run"`
	BootID string `json:"boot-id"`
	// From and Running are the running packages before and after.
	From    packages `json:"from"`
	Running packages `json:"running"`
	// Pending are the packages that run after the next boot.
	Pending packages `json:"pending,omitempty"`
	// Earlier is the number of earlier upgrades in this run.
	Earlier int `json:"earlier"`
	// Settled reports that Running was written to the package database.
	Settled bool `json:"settled"`
	// RolledBack reports that the effect was undone.
	RolledBack bool `json:"rolled-back,omitempty"`
	// IsRollback reports that it undoes an upgrade of an earlier run: its line is that of a
	// rollback.
	IsRollback bool `json:"is-rollback,omitempty"`
	// GaveUp is the kernel that the machine started, gave up and went back from, until
	// that is confirmed.
	GaveUp string `json:"gave-up,omitempty"`
}

// upgrade reads the record; a host that was never upgraded has the zero record.
func (h *Host) upgrade() (upgrade, error) {
	var u upgrade
	err := h.decode(upgradeFile, &u, format.Simulated.Decode)
	if errors.Is(err, fs.ErrNotExist) {
		return upgrade{}, nil
	}
	return u, err
}

func (h *Host) writeUpgrade(u upgrade) error {
	data, err := format.Simulated.Encode(u)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", h.path(upgradeFile), err)
	}
	return durable.WriteFile(h.path(upgradeFile), append(data, '\n'), 0o644)
}

// newUpgrade returns the record of an upgrade before its effect.
func newUpgrade(run uint64, bootID string, current packages, plan message.ChangeSet, reboot bool) upgrade {
	running, pending := current.carryOut(plan), packages(nil)
	if reboot {
		running, pending = current.after(running)
	}
	return upgrade{Run: run, BootID: bootID, From: current, Running: running, Pending: pending}
}

// outcome returns the outcome of an upgrade that has happened.
func (u upgrade) outcome() strategy.Outcome {
	if len(u.Pending) > 0 {
		return strategy.RebootRequired
	}
	return strategy.Done
}

// happened reports whether the upgrade of a run has happened and was not rolled
// back.
func (h *Host) happened(u upgrade, run uint64) (bool, error) {
	if u.Run != run || u.From == nil || u.RolledBack {
		return false, nil
	}
	count, err := h.count(u.action(), run)
	return count > u.Earlier, err
}

// action is the action whose line is the effect.
func (u upgrade) action() string {
	if u.IsRollback {
		return actionRollback
	}
	return actionUpgrade
}

// settle completes an upgrade after a crash between the line in effects.log and
// the write of the package database. mu must be held unless the host is not in use
// yet.
func (h *Host) settle() error {
	u, err := h.upgrade()
	if err != nil || u.Settled {
		return err
	}
	done, err := h.happened(u, u.Run)
	if err != nil || !done {
		return err
	}
	if err := h.write(packagesFile, u.Running); err != nil {
		return err
	}
	u.Settled = true
	return h.writeUpgrade(u)
}

// restore undoes an upgrade; an old kernel runs after the next boot.
func (h *Host) restore(u upgrade) error {
	current, err := h.packages()
	if err != nil {
		return err
	}
	running, pending := current.after(u.From)
	if err := h.write(packagesFile, running); err != nil {
		return err
	}
	u.Pending, u.RolledBack = pending, true
	return h.writeUpgrade(u)
}

// missing returns an error if the running packages differ from those of the
// upgrade.
func (u upgrade) missing(current packages) error {
	for name, version := range u.Running.with(u.Pending) {
		if current[name] != version {
			return fmt.Errorf("%s %s runs; after the upgrade of run %d it should be %s", name, current[name], u.Run, version)
		}
	}
	if maps.Equal(u.Running.with(u.Pending), current) {
		return nil
	}
	return fmt.Errorf("there are packages that the upgrade of run %d did not install", u.Run)
}

// packages maps each package to its version.
type packages map[string]string

// kernel is the only package whose new version runs after a boot.
const kernel = "kernel"

var lastNumber = text.Pattern(`^(.*?)([0-9]+)([^0-9]*)$`)

// packages reads the running packages.
func (h *Host) packages() (packages, error) {
	var p packages
	if err := h.read(packagesFile, &p); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", h.path(packagesFile), err)
	}
	return p, nil
}

func (p packages) check() error {
	if len(p) == 0 {
		return errors.New(`it names no package; it should be like {"base-os": "1.0", "kernel": "6.1.0"}`)
	}
	for name, version := range p {
		if name == "" || version == "" {
			return fmt.Errorf("package %q has version %q; neither may be empty", name, version)
		}
	}
	return nil
}

// next returns each package in its next version.
func (p packages) next() packages {
	next := make(packages, len(p))
	for name, version := range p {
		next[name] = nextVersion(version)
	}
	return next
}

// planTo returns what changes from p to another set of packages.
func (p packages) planTo(to packages) (plan message.ChangeSet) {
	for name := range p.with(to) {
		if p[name] != to[name] {
			plan.Changes = append(plan.Changes, message.Change{Name: name, From: p[name], To: to[name]})
		}
	}
	return plan.Sorted()
}

// carryOut returns the packages after a plan.
func (p packages) carryOut(plan message.ChangeSet) packages {
	after := maps.Clone(p)
	for _, c := range plan.Changes {
		if after[c.Name] = c.To; c.To == "" {
			delete(after, c.Name)
		}
	}
	return after
}

// nextVersion increments the last number of a version.
func nextVersion(version string) string {
	parts := lastNumber().FindStringSubmatch(version)
	if parts == nil {
		return version + ".1"
	}
	number, ok := new(big.Int).SetString(parts[2], 10)
	if !ok {
		return version + ".1"
	}
	return parts[1] + number.Add(number, big.NewInt(1)).String() + parts[3]
}

// after returns the running packages after an installation of to on p. A new kernel
// is pending until the boot.
func (p packages) after(to packages) (running, pending packages) {
	running = maps.Clone(to)
	old, had := p[kernel]
	if wanted, has := to[kernel]; had && has && wanted != old {
		running[kernel] = old
		pending = packages{kernel: wanted}
	}
	return running, pending
}

// with returns p, overridden by more.
func (p packages) with(more packages) packages {
	merged := maps.Clone(p)
	maps.Copy(merged, more)
	return merged
}

// Effect is a line of effects.log: an action with an effect.
type Effect struct {
	// Action is prepare, upgrade, reboot (requested), boot (after a reboot or a
	// crash) or rollback.
	Action string `json:"action"`
	// Run is the run of the action; for reboot and boot, of the last upgrade.
	Run uint64 `json:"run"`
	// BootID is the host's boot id at the time; for boot, the new one.
	BootID string `json:"boot-id"`
}

// Effects returns the effects so far, oldest first. An incomplete last line, from a
// crash, is ignored.
func (h *Host) Effects() ([]Effect, error) {
	data, err := os.ReadFile(h.path(effectsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	effects, err := parseEffects(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", h.path(effectsFile), err)
	}
	return effects, nil
}

func parseEffects(data []byte) ([]Effect, error) {
	var effects []Effect
	for number := 1; ; number++ {
		line, rest, complete := bytes.Cut(data, []byte("\n"))
		if !complete {
			return effects, nil
		}
		var e Effect
		if err := format.Simulated.Decode(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		effects, data = append(effects, e), rest
	}
}

// count returns how often an action has had its effect in a run.
func (h *Host) count(action string, run uint64) (int, error) {
	effects, err := h.Effects()
	count := 0
	for _, e := range effects {
		if e.Action == action && e.Run == run {
			count++
		}
	}
	return count, err
}

// record appends one effect and syncs it.
func (h *Host) record(action string, run uint64) error {
	bootID, err := h.BootID()
	if err != nil {
		return err
	}
	line, err := format.Simulated.Encode(Effect{Action: action, Run: run, BootID: bootID})
	if err != nil {
		return err
	}
	if err := h.appendEffect(append(line, '\n')); err != nil {
		return fmt.Errorf("cannot write %s: %w", h.path(effectsFile), err)
	}
	return nil
}

func (h *Host) appendEffect(line []byte) (err error) {
	fresh := !exists(h.path(effectsFile))
	f, err := os.OpenFile(h.path(effectsFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := truncateIncomplete(f); err != nil {
		return err
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	if err := f.Sync(); err != nil || !fresh {
		return err
	}
	return durable.SyncFolder(h.dir)
}

// truncateIncomplete removes an incomplete last line.
func truncateIncomplete(f *os.File) error {
	data, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	complete := bytes.LastIndexByte(data, '\n') + 1
	if complete == len(data) {
		return nil
	}
	return f.Truncate(int64(complete))
}
