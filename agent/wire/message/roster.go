package message

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Debt is what has yet to show that a host is well again.
type Debt struct {
	// Answer is the command that the host has not answered, so that it may be at
	// work; empty when it has.
	Answer Action `json:"answer,omitempty"`
	// Look means that nobody knows what the host did, itself included: it is not
	// touched before somebody who has looked releases it.
	Look bool `json:"look,omitempty"`
	// Undrain means that the host was drained and is not undrained.
	Undrain bool `json:"undrain,omitempty"`
	// Checks is the kind of the checks that the host has to pass; empty when none.
	Checks TaskKind `json:"checks,omitempty"`
}

// Any reports whether there is any debt.
func (d Debt) Any() bool { return d != Debt{} }

// Entry is a host of the roster that a run is opened with.
type Entry struct {
	Host string `json:"host"`
	// Stage is the name of the stage in which the host counts though it is no
	// member, as one that a retry leaves alone; empty for all others.
	Stage string `json:"stage,omitempty"`
	// Silent means that the host is not heard of.
	Silent bool `json:"silent,omitempty"`
	// Since is when an earlier run took the host out of service for what it owes, or
	// when the host fell silent while a run was under way; zero for a host that
	// was silent before.
	Since time.Time `json:"since,omitzero"`
	Owes  Debt      `json:"owes,omitzero"`
	// Epoch is that of the worker that was prepared for the command that the host has not
	// answered; only where an answer that comes before the run is opened counts
	// (Opened.RosterAsOf).
	Epoch uint64 `json:"epoch,omitempty"`
	// Works is the command of an earlier run that the host has not answered though it was
	// released: it may still carry it out. That does not keep it out of service.
	Works Action `json:"works,omitempty"`
	// Run is the run whose command the host has not answered; 0 if it has answered,
	// and in records of versions that did not note it.
	Run uint64 `json:"run,omitempty"`
}

// Absent reports whether the host was silent before any run was opened in which it
// counted.
func (e Entry) Absent() bool { return e.Silent && e.Since.IsZero() }

// checkRoster tells what is wrong with the roster that a run is opened with.
func (e Opened) checkRoster() error {
	if err := checkEntries(e.Roster); err != nil {
		return err
	}
	members := make(map[string]bool, len(e.Members))
	for _, host := range e.Members {
		members[host] = true
	}
	for _, entry := range e.Roster {
		if err := entry.check(members[entry.Host], e.Rollout.Stages); err != nil {
			return err
		}
	}
	return nil
}

// checkEntries tells what is wrong with the hosts of a roster, of which there may be none.
func checkEntries(roster []Entry) error {
	if len(roster) == 0 {
		return nil
	}
	hosts := make([]string, len(roster))
	for i, entry := range roster {
		hosts[i] = entry.Host
	}
	return checkHosts(hosts)
}

func (e Carried) check() error {
	if err := cmp.Or(checkEnvironment(e.Environment), present("run", e.Run != 0), checkOrder(e.Environment, e.Follows, e.Completed), checkPromotion(e.Promotion)); err != nil {
		return err
	}
	if err := checkEntries(e.Roster); err != nil {
		return fmt.Errorf("roster: %w", err)
	}
	for _, entry := range e.Roster {
		if err := entry.check(false, nil); err != nil {
			return fmt.Errorf("roster: %w", err)
		}
	}
	if err := e.Reached.check(); err != nil {
		return fmt.Errorf("reached: %w", err)
	}
	return checkCellsOf(nil, e.Roster, e.Cells)
}

func (e Entry) check(member bool, stages []rollout.ResolvedStage) error {
	known := slices.ContainsFunc(stages, func(s rollout.ResolvedStage) bool { return s.Name == e.Stage })
	switch {
	case e.Stage != "" && member:
		return fmt.Errorf("%s is a member, and has stage %q besides", e.Host, e.Stage)
	case e.Stage != "" && !known:
		return fmt.Errorf("%s has stage %q, which is none of the policy's", e.Host, e.Stage)
	case e.Absent() && e.Stage == "" && !member:
		return fmt.Errorf("%s is silent, and neither a member nor of a stage", e.Host)
	case e.Owes.Answer != "" && !e.Owes.Answer.Known():
		return fmt.Errorf("%s has not answered %q, which is no action", e.Host, e.Owes.Answer)
	case e.Works != "" && !e.Works.Known():
		return fmt.Errorf("%s still works on %q, which is no action", e.Host, e.Works)
	case e.Owes.Checks != "" && (!e.Owes.Checks.OfHost() || e.Owes.Checks.IsHook()):
		return fmt.Errorf("%s has to pass %q, which are no checks of a host", e.Host, e.Owes.Checks)
	case e.Owes.Any() && e.Since.IsZero():
		return fmt.Errorf("%s owes something, and since is missing", e.Host)
	case !e.Owes.Any() && !e.Silent && !e.Since.IsZero():
		return fmt.Errorf("%s has since, and neither owes anything nor is silent", e.Host)
	}
	return nil
}
