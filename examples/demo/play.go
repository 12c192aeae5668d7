package main

import (
	"fmt"
	"time"
)

// play is the demo, step by step.
func (d *demo) play() error {
	say("The agent starts with three simulated hosts. Three environment variables tell Terraform its address, token and tenant.")
	if err := d.startAgent(); err != nil {
		return err
	}
	say("The hosts before the upgrade:")
	if err := d.agent("hosts"); err != nil {
		return err
	}
	start := time.Now().UTC().Format("15:04")
	say("terraform apply: tenant demo may be upgraded every day from %s UTC, for one hour.", start)
	if err := d.apply(start); err != nil {
		return err
	}
	say("The window is open now, so the agent starts a run by itself: all hosts prepare, then one host after the other is upgraded and rebooted.")
	if err := d.agent("watch"); err != nil {
		return fmt.Errorf("the run was not completed: %w", err)
	}
	say("The hosts after the upgrade:")
	if err := d.agent("hosts"); err != nil {
		return err
	}
	say("terraform apply reads the result:")
	if err := d.apply(start); err != nil {
		return err
	}
	return d.drift(start)
}

// drift shows a plan without changes and a plan after a change on the server.
func (d *demo) drift(start string) error {
	say("terraform plan -detailed-exitcode, for CI. Nothing has changed, so 0 is expected:")
	if err := d.plan(start, 0); err != nil {
		return err
	}
	say("Somebody changes the duration of the window to three hours through the API.")
	if err := d.meddle(start); err != nil {
		return err
	}
	say("terraform plan -detailed-exitcode shows the difference, so 2 is expected:")
	if err := d.plan(start, 2); err != nil {
		return err
	}
	say("terraform destroy: without a window there are no upgrades.")
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
