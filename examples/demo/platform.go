package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The controllers of the platform, the active one first.
var controllers = []string{"h01", "h02"}

// playPlatform is the demo with a platform of two controllers, step by step.
func (d *demo) playPlatform() error {
	say("The agent starts with two simulated hosts, the controllers of a platform. A file in labels.d of each says which of them is active.")
	if err := d.layPlatform(); err != nil {
		return err
	}
	if err := d.startAgent("--hosts", fmt.Sprint(len(controllers))); err != nil {
		return err
	}
	say("The database of h02 is out of sync, so h02 will not take over from h01.")
	fault := filepath.Join(d.dir, "agent", "platform", "out-of-sync")
	if err := errors.Join(os.MkdirAll(filepath.Dir(fault), 0o700), os.WriteFile(fault, nil, 0o600)); err != nil {
		return err
	}
	say("terraform apply: the rollout has the stages of the module platform. The platform is healthy, so the run starts.")
	if err := d.applyPlatform(); err != nil {
		return err
	}
	if err := d.awaitRun("paused", func(r playedRun) bool { return r.Paused != "" }); err != nil {
		return err
	}
	say("h02 has the new release. The step swact has failed, and on_failure = \"pause\" pauses the run. The list shows what is done and what is still to come:")
	if err := d.agent("status"); err != nil {
		return err
	}
	say("Somebody brings the database of h02 in sync, and lets the run take the step again.")
	if err := os.Remove(fault); err != nil {
		return err
	}
	if err := d.agent("resume", "--reason", "h02 is in sync"); err != nil {
		return err
	}
	if err := d.awaitRun("waiting for an approval", func(r playedRun) bool { return r.WaitingFor != nil && r.WaitingFor.What == "approval" }); err != nil {
		return err
	}
	say("Both controllers have the new release, and h01 is active again. The last step removes the old data: there is no way back from it, so a person approves it.")
	if err := d.agent("status"); err != nil {
		return err
	}
	if err := d.agent("approve", "complete", "--reason", "all services are well"); err != nil {
		return err
	}
	if err := d.awaitRun("completed", func(r playedRun) bool { return r.Result == "completed" }); err != nil {
		return err
	}
	say("terraform apply reads the result:")
	if err := d.applyPlatform(); err != nil {
		return err
	}
	say("The hosts and the list at the end:")
	return errors.Join(d.agent("hosts"), d.agent("status"))
}

// layPlatform installs on each controller the scripts of the steps, and the label that says whether it
// is active. The folders of the hosts are not there yet: the agent makes the rest of them.
func (d *demo) layPlatform() error {
	scripts, err := filepath.Glob(filepath.Join(d.source, "scripts", "*"))
	if err != nil {
		return err
	}
	for i, host := range controllers {
		home := filepath.Join(d.dir, "agent", "hosts", host)
		checks, labels := filepath.Join(home, "checks"), filepath.Join(home, "labels.d")
		if err := errors.Join(os.MkdirAll(checks, 0o700), os.MkdirAll(labels, 0o700)); err != nil {
			return err
		}
		for _, script := range scripts {
			text, err := os.ReadFile(script)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(checks, filepath.Base(script)), text, 0o700); err != nil { //nolint:gosec // A script is executed.
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(labels, "active"), fmt.Appendf(nil, "active=%t\n", i == 0), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// playedRun is the part of a run that the demo looks at.
type playedRun struct {
	Paused     string `json:"paused"`
	Result     string `json:"result"`
	WaitingFor *struct {
		What string `json:"what"`
	} `json:"waiting-for"`
}

// awaitRun waits until the newest run has come to a point.
func (d *demo) awaitRun(point string, reached func(playedRun) bool) error {
	return d.poll(func() (bool, string, error) {
		var newest []playedRun
		err := d.get("/runs?limit=1", &newest)
		return len(newest) > 0 && reached(newest[0]), "the run is not " + point, err
	})
}

func (d *demo) applyPlatform() error { return d.terraform(0, "apply", "-auto-approve", "-no-color") }
