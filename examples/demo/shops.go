package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// shop is a shop of the demo, with two hosts.
type shop struct {
	name, zone string
	// result is how its run ends.
	result string
}

// shops are those that shops/main.tf declares.
var shops = []shop{
	{"athens", "Europe/Athens", "completed"},
	{"basel", "Europe/Zurich", "completed"},
	{"bern", "Europe/Zurich", "partial"},
	{"lisbon", "Europe/Lisbon", "failed"},
	{"patras", "Europe/Athens", "completed"},
	{"porto", "Europe/Lisbon", "completed"},
}

// The hosts with a fault: the second one of bern loses its power, and the first one of lisbon
// hangs.
const (
	deadHost = "h06"
	hungHost = "h07"
)

// playShops is the demo with six shops, step by step.
func (d *demo) playShops() error {
	say("The agent starts with twelve simulated hosts, two in each of six shops. A label says which shop a host is in.")
	args := []string{"--hosts", fmt.Sprint(2 * len(shops))}
	for i, s := range shops {
		for _, n := range []int{2*i + 1, 2*i + 2} {
			args = append(args, "--label", fmt.Sprintf("h%02d:shop=%s", n, s.name))
		}
	}
	if err := d.startAgent(args...); err != nil {
		return err
	}
	say("Two hosts will make trouble: %s in bern loses its power when it is to prepare, and %s in lisbon hangs when it is to be upgraded.", deadHost, hungHost)
	if err := errors.Join(d.fault(deadHost, `{"prepare":"power-off"}`), d.fault(hungHost, `{"upgrade":"hang"}`)); err != nil {
		return err
	}
	say("terraform apply: an environment for each shop. The windows of all three time zones open now, so six runs begin side by side. The disruption budget lets one host of each shop be out of service.")
	start, err := startTimes(time.Now())
	if err != nil {
		return err
	}
	if err := d.terraform(0, "apply", "-auto-approve", "-no-color", "-var", "start_times="+start); err != nil {
		return err
	}
	if err := d.await("begun", func(e environment) bool { return e.Counts["upgrading"] > 0 || e.LastUpgrade != nil }); err != nil {
		return err
	}
	say("The table of the shops while they are upgraded:")
	if err := d.agent("status"); err != nil {
		return err
	}
	if err := d.await("ended", func(e environment) bool { return e.LastUpgrade != nil }); err != nil {
		return err
	}
	if err := d.checkResults(); err != nil {
		return err
	}
	say("The hosts afterwards. Nothing that went wrong in bern and lisbon stopped another shop:")
	if err := d.agent("hosts"); err != nil {
		return err
	}
	say("terraform plan -detailed-exitcode: nothing has changed in the configuration, so 0 is expected.")
	if err := d.terraform(0, "plan", "-detailed-exitcode", "-no-color", "-var", "start_times="+start); err != nil {
		return err
	}
	say("The table again, the most urgent shop first, and what you can do about it:")
	return d.agent("status")
}

// fault writes the faults of a host.
func (d *demo) fault(host, faults string) error {
	return os.WriteFile(filepath.Join(d.dir, "agent", "hosts", host, "faults.json"), []byte(faults), 0o600)
}

// startTimes returns, for the variable start_times, the time of day in the zone of each shop.
func startTimes(now time.Time) (string, error) {
	times := map[string]string{}
	for _, s := range shops {
		zone, err := time.LoadLocation(s.zone)
		if err != nil {
			return "", err
		}
		times[s.zone] = now.In(zone).Format("15:04")
	}
	text, err := json.Marshal(times)
	return string(text), err
}

// environment is the part of the state of an environment that the demo looks at.
type environment struct {
	Name        string         `json:"name"`
	Counts      map[string]int `json:"counts"`
	LastUpgrade *struct {
		Result string `json:"result"`
	} `json:"last-upgrade"`
}

// await waits until the runs of all shops have come to a point, such as their end.
func (d *demo) await(point string, reached func(environment) bool) error {
	return d.poll(func() (bool, string, error) {
		environments, err := d.environments()
		n := 0
		for _, e := range environments {
			if reached(e) {
				n++
			}
		}
		return n == len(shops), fmt.Sprintf("the runs of %d of %d shops have %s", n, len(shops), point), err
	})
}

// checkResults checks that the faults made trouble in their own shops and in no other.
func (d *demo) checkResults() error {
	environments, err := d.environments()
	if err != nil {
		return err
	}
	results := map[string]string{}
	for _, e := range environments {
		if e.LastUpgrade != nil {
			results[e.Name] = e.LastUpgrade.Result
		}
	}
	for _, s := range shops {
		if results[s.name] != s.result {
			return fmt.Errorf("the run of shop %s ended as %q, not as %q", s.name, results[s.name], s.result)
		}
	}
	return nil
}

// environments reads what each environment is doing.
func (d *demo) environments() (all []environment, err error) {
	return all, d.get("/environments", &all)
}
