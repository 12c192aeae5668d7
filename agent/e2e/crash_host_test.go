//go:build linux

package e2e

import (
	"context"
	"errors"
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
	reboot := fmt.Sprintf("r=$(cat %s); echo boot-$r > %s; echo \"%s reboots $r\" > %s", f.path(host, "run"), f.path(host, "boot-id"), host, f.path("recorder"))
	f.keep(host, "worker", "--tenant", "acme", "--host", host, "--application", "appliance",
		"--state", f.path(host, "state"), "--nats-url", "nats://"+f.address+":4222", "--key-file", f.path(host, "key"),
		"--scripts", f.path(host, "scripts"), "--checks", f.path(host, "checks"), "--boot-id-file", f.path(host, "boot-id"),
		"--reboot-command", reboot, "--reboot-limit", "10s")
	return nil
}

// writeSite writes the start check of the site, and the scripts of the last step, which is done there and
// has the output of the step before.
func (f *crashFleet) writeSite() error {
	recorder := f.path("recorder")
	return f.writeScripts("site-checks", map[string]string{
		"ready":    "echo \"site is ready \" > " + recorder + "\n",
		"complete": "test \"$(cat $OSUPGRADE_OUTPUTS/JOIN)\" = $OSUPGRADE_RUN || exit 1\necho \"site completes $OSUPGRADE_RUN\" > " + recorder + "\n",
		"reopen":   "test \"$(cat $OSUPGRADE_OUTPUTS/JOIN)\" = \"$(cat " + f.path("joined") + ")\" || exit 1\necho \"site reopens $OSUPGRADE_RUN\" > " + recorder + "\n",
	})
}

// writeHost makes a host: a version file, a boot id and its scripts. What a
// run installs is its number, and the version from before is kept beside it. A plan
// proves what is done on h01, and nothing does on the others.
func (f *crashFleet) writeHost(host string) error {
	version, recorder := f.path(host, "version"), f.path("recorder")
	record := func(what string) string {
		return fmt.Sprintf("echo \"%s %s $OSUPGRADE_RUN\" > %s\n", host, what, recorder)
	}
	write := func(file, text string) string {
		return fmt.Sprintf("echo %s > %s.new && mv %s.new %s\n", text, file, file, file)
	}
	was := f.path(host, "was-")
	begin := write(f.path(host, "run"), "$OSUPGRADE_RUN") + "test -e " + was + "$OSUPGRADE_RUN || " + write(was+"$OSUPGRADE_RUN", "$(cat "+version+")")
	end := map[string]string{"h02": "echo 'it does not work'; exit 1\n", "h03": "exit 10\n"}[host]
	plan := map[string]string{"h01": "echo '{\"plan\": {\"changes\": [{\"name\": \"appliance\", \"from\": \"'$(cat " + version + ")'\", \"to\": \"'$OSUPGRADE_RUN'\"}]}}'\n"}[host]
	booted := map[string]string{"h03": "test $(cat " + f.path(host, "boot-id") + ") = boot-$OSUPGRADE_RUN || exit 10\n"}[host]
	scripts := map[string]string{
		"versions":         "echo appliance $(cat " + version + ")\n",
		"prepare":          record("prepares") + plan,
		"upgrade":          record("upgrade begins") + begin + write(version, "$OSUPGRADE_RUN") + record("upgrade ends") + end,
		"resume":           "test $(cat " + version + ") = $OSUPGRADE_RUN || exit 11\n" + end,
		"verify":           "test $(cat " + version + ") = $OSUPGRADE_RUN\n",
		"prepare-rollback": record("can go back"),
		"rollback": record("rolls back") + begin + "to=$(cat " + was + "${OSUPGRADE_ROLLBACK_OF:-$OSUPGRADE_RUN})\n" +
			"test $(cat " + version + ") = $to || { " + write(version, "$to") + record("is changed") + "}\n" + booted,
	}
	checks := map[string]string{
		"ready":   record("is ready"),
		"well":    record("is checked"),
		"drain":   record("drains"),
		"undrain": record("undrains"),
		"join":    record("joins") + write(f.path("joined"), "$OSUPGRADE_RUN") + "echo JOIN=$OSUPGRADE_RUN >&3\n",
		"leave":   record("leaves"),
	}
	state := map[string]string{"version": "0\n", "boot-id": "boot-0\n"}
	if err := errors.Join(f.writeScripts(filepath.Join(host, "scripts"), scripts), f.writeScripts(filepath.Join(host, "checks"), checks)); err != nil {
		return err
	}
	for name, text := range state {
		if err := os.WriteFile(f.path(host, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeScripts writes the scripts of a folder.
func (f *crashFleet) writeScripts(folder string, scripts map[string]string) error {
	if err := os.MkdirAll(f.path(folder), 0o755); err != nil {
		return err
	}
	for name, text := range scripts {
		if err := os.WriteFile(f.path(folder, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil { //nolint:gosec // scripts
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
	hook := func(script string) *v1.Hook {
		return &v1.Hook{Type: "exec", Script: script, RetryInterval: "1s"}
	}
	atSite := func(script string) *v1.Hook {
		return &v1.Hook{Type: "exec", Script: script, RetryInterval: "1s", On: "site"}
	}
	rollout := v1.Rollout{
		Stages: []v1.Stage{
			{Name: "good", Match: &v1.Match{Hosts: []string{"h01", "h03"}}},
			{Name: "join", Step: &v1.Step{Do: hook("join"), Undo: hook("leave"), Match: &v1.Match{Hosts: []string{"h01", "h02"}}, Gives: []string{"JOIN"}}},
			{Name: "rest"},
			{Name: "complete", Step: &v1.Step{Do: atSite("complete"), Undo: atSite("reopen")}},
		},
		OnFailure: "continue", MaxFailures: "100%", MinPrepared: "100%",
		Checks: &v1.RolloutChecks{Start: []v1.StartCheck{{Check: ready}, {Check: ready, Match: &v1.Match{Applications: []string{"appliance"}}}}, BeforeHost: check, AfterHost: check},
		Hooks: &v1.RolloutHooks{
			Drain:   hook("drain"),
			Undrain: hook("undrain"),
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
