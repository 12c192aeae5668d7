package main

import (
	"fmt"
	"time"
)

// play is the demo, step by step.
func (d *demo) play() error {
	say("An agent starts, with three simulated hosts. Terraform knows it by three variables.")
	if err := d.startAgent(); err != nil {
		return err
	}
	say("These are the hosts before:")
	if err := d.agent("hosts"); err != nil {
		return err
	}
	start := time.Now().UTC().Format("15:04")
	say("terraform apply: tenant demo may be upgraded every day from %s UTC, for one hour.", start)
	if err := d.apply(start); err != nil {
		return err
	}
	say("That window is open now, so the agent begins a run by itself: all hosts prepare, then one after the other is upgraded and rebooted.")
	if err := d.agent("watch"); err != nil {
		return fmt.Errorf("the run did not end well: %w", err)
	}
	say("These are the hosts after:")
	if err := d.agent("hosts"); err != nil {
		return err
	}
	say("terraform apply reads the result back:")
	if err := d.apply(start); err != nil {
		return err
	}
	return d.drift(start)
}

// drift shows what plan says when nothing has changed, and when something has.
func (d *demo) drift(start string) error {
	say("terraform plan -detailed-exitcode, for CI. Nothing has changed, so 0 is expected:")
	if err := d.plan(start, 0); err != nil {
		return err
	}
	say("Somebody makes the window three hours long, behind Terraform's back.")
	if err := d.meddle(start); err != nil {
		return err
	}
	say("terraform plan -detailed-exitcode now shows the difference, and 2 is expected:")
	if err := d.plan(start, 2); err != nil {
		return err
	}
	say("terraform destroy: no window, no upgrades.")
	return d.terraform(0, "destroy", "-auto-approve", "-no-color", "-var", "start_time="+start)
}

func (d *demo) apply(start string) error {
	return d.terraform(0, "apply", "-auto-approve", "-no-color", "-var", "start_time="+start)
}

func (d *demo) plan(start string, want int) error {
	if err := d.terraform(want, "plan", "-detailed-exitcode", "-no-color", "-var", "start_time="+start); err != nil {
		return err
	}
	fmt.Printf("exit code: %d\n", want)
	return nil
}
