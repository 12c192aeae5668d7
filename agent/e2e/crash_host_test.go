//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func (f *crashFleet) openHost(host string) error {
	if err := f.writeHost(host); err != nil {
		return err
	}
	keys, err := credential.OpenFolder(f.path("site", "credentials", "hosts"))
	if err != nil {
		return err
	}
	seed, err := natsd.NewHosts(keys).Add(natsd.Identity{Tenant: "acme", Host: host})
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path(host, "key"), seed, 0o600); err != nil {
		return err
	}
	reboot := fmt.Sprintf("r=$(cat %s); echo boot-$r > %s; echo \"%s reboots $r\" > %s", f.path(host, "version"), f.path(host, "boot-id"), host, f.path("recorder"))
	f.keep(host, "worker", "--tenant", "acme", "--host", host, "--application", "appliance",
		"--state", f.path(host, "state"), "--nats-url", "nats://"+f.address+":4222", "--key-file", f.path(host, "key"),
		"--scripts", f.path(host, "scripts"), "--checks", f.path(host, "checks"), "--boot-id-file", f.path(host, "boot-id"),
		"--reboot-command", reboot, "--reboot-limit", "10s")
	return nil
}

// writeSite writes the start check of the site, and the script of the last step, which is done there and
// has the output of the step before.
func (f *crashFleet) writeSite() error {
	if err := os.MkdirAll(f.path("site-checks"), 0o755); err != nil {
		return err
	}
	ready := "#!/bin/sh\necho \"site is ready \" > " + f.path("recorder") + "\n"
	if err := os.WriteFile(f.path("site-checks", "ready"), []byte(ready), 0o755); err != nil { //nolint:gosec // a script
		return err
	}
	complete := "#!/bin/sh\ntest \"$(cat $OSUPGRADE_OUTPUTS/JOIN)\" = $OSUPGRADE_RUN || exit 1\necho \"site completes $OSUPGRADE_RUN\" > " + f.path("recorder") + "\n"
	return os.WriteFile(f.path("site-checks", "complete"), []byte(complete), 0o755) //nolint:gosec // a script
}

// writeHost makes a host: a version file, a boot id and its scripts. What a
// run installs is its number.
func (f *crashFleet) writeHost(host string) error {
	version, recorder := f.path(host, "version"), f.path("recorder")
	record := func(what string) string {
		return fmt.Sprintf("echo \"%s %s $OSUPGRADE_RUN\" > %s\n", host, what, recorder)
	}
	set := func(to string) string {
		return fmt.Sprintf("echo %s > %s.new && mv %s.new %s\n", to, version, version, version)
	}
	end := map[string]string{"h02": "echo 'it does not work'; exit 1\n", "h03": "exit 10\n"}[host]
	files := map[string]string{
		"version": "0\n", "boot-id": "boot-0\n",
		"scripts/versions": "#!/bin/sh\necho appliance $(cat " + version + ")\n",
		"scripts/prepare":  "#!/bin/sh\n" + record("prepares"),
		"scripts/upgrade":  "#!/bin/sh\n" + record("upgrade begins") + set("$OSUPGRADE_RUN") + record("upgrade ends") + end,
		"scripts/resume":   "#!/bin/sh\ntest $(cat " + version + ") = $OSUPGRADE_RUN || exit 11\n" + end,
		"scripts/verify":   "#!/bin/sh\ntest $(cat " + version + ") = $OSUPGRADE_RUN\n",
		"scripts/rollback": "#!/bin/sh\n" + set("0") + record("rolls back"),
		"checks/ready":     "#!/bin/sh\n" + record("is ready"),
		"checks/well":      "#!/bin/sh\n" + record("is checked"),
		"checks/drain":     "#!/bin/sh\n" + record("drains"),
		"checks/undrain":   "#!/bin/sh\n" + record("undrains"),
		"checks/join":      "#!/bin/sh\n" + record("joins") + "echo JOIN=$OSUPGRADE_RUN >&3\n",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(f.path(host, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(f.path(host, name), []byte(text), 0o755); err != nil { //nolint:gosec // scripts
			return err
		}
	}
	return nil
}

// configure writes the configuration, the rollout and the environments, as soon as the site
// takes them.
func (f *crashFleet) configure() error {
	ready := v1.Check{Type: "exec", Script: "ready", Timeout: "2m"}
	check := []v1.Check{{Type: "exec", Script: "well", Interval: "1s", Timeout: "2m"}}
	rollout := v1.Rollout{
		Stages: []v1.Stage{
			{Name: "good", Match: &v1.Match{Hosts: []string{"h01", "h03"}}},
			{Name: "join", Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: "join", RetryInterval: "1s"}, Match: &v1.Match{Hosts: []string{"h01", "h02"}}, Gives: []string{"JOIN"}}},
			{Name: "rest"},
			{Name: "complete", Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: "complete", On: "site", RetryInterval: "1s"}}},
		},
		OnFailure: "continue", MaxFailures: "100%",
		Checks: &v1.RolloutChecks{Start: []v1.StartCheck{{Check: ready}, {Check: ready, Match: &v1.Match{Applications: []string{"appliance"}}}}, BeforeHost: check, AfterHost: check},
		Hooks: &v1.RolloutHooks{
			Drain:   &v1.Hook{Type: "exec", Script: "drain", RetryInterval: "1s"},
			Undrain: &v1.Hook{Type: "exec", Script: "undrain", RetryInterval: "1s"},
		},
	}
	return f.insist("configure the site", func(ctx context.Context) error {
		if _, err := f.api.PutConfig(ctx, "acme", v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}}}, client.Precondition{}); err != nil {
			return err
		}
		if _, err := f.api.PutRollout(ctx, "acme", rollout, client.Precondition{}); err != nil {
			return err
		}
		for name, hosts := range f.environments {
			if name == "" {
				continue
			}
			e := v1.Environment{Match: v1.Match{Hosts: hosts}}
			if _, err := client.EnvironmentNamed(name).Put(ctx, f.api, "acme", client.Stored[v1.Environment]{}, e, client.Precondition{}); err != nil {
				return err
			}
		}
		return nil
	})
}
