package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// demo is the state of the demo.
type demo struct {
	ctx context.Context
	// dir is the temporary folder, bin the folder of provider and agent, cli the
	// Terraform or OpenTofu CLI, source the folder of the configuration.
	dir, bin, cli, source string
	// env is the environment of every program: the caller's without Terraform
	// settings, and the variables that locate the agent.
	env    []string
	daemon *exec.Cmd
}

// version is the version under which the provider is installed.
const version = "0.0.1"

// work is the folder in which the CLI works.
func (d *demo) work() string { return filepath.Join(d.dir, "demo", "work") }

// install creates a filesystem mirror with the provider and the configuration that
// uses it, and puts the modules where the configuration looks for them.
func (d *demo) install(modules string) error {
	work := d.work()
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(d.source, "main.tf"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "main.tf"), text, 0o600); err != nil {
		return err
	}
	if modules, err = filepath.Abs(modules); err != nil {
		return err
	}
	if err := os.Symlink(modules, filepath.Join(d.dir, "modules")); err != nil {
		return err
	}
	mirror := filepath.Join(d.dir, "mirror")
	config := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror)
	if err := os.WriteFile(filepath.Join(d.dir, "cli.tfrc"), []byte(config), 0o600); err != nil {
		return err
	}
	d.env = append(clean(os.Environ()), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_CLI_CONFIG_FILE="+filepath.Join(d.dir, "cli.tfrc"))
	address, err := d.providerAddress()
	if err != nil {
		return err
	}
	platform := filepath.Join(mirror, filepath.FromSlash(address), version, runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(platform, 0o700); err != nil {
		return err
	}
	provider := filepath.Join(d.bin, "terraform-provider-osupgrade")
	return os.Symlink(provider, filepath.Join(platform, "terraform-provider-osupgrade_v"+version))
}

// clean removes the settings of Terraform and of our programs.
func clean(env []string) []string {
	var kept []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, "TF_") && !strings.HasPrefix(entry, "OSUPGRADE_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

var required = regexp.MustCompile(`provider\[([^\]]+)\]`)

// providerAddress gets the provider's full address from the CLI, because Terraform
// and OpenTofu expand the short address differently.
func (d *demo) providerAddress() (string, error) {
	var out bytes.Buffer
	for _, command := range []string{"get", "providers"} {
		if err := d.run(0, &out, d.cli, "-chdir="+d.work(), command, "-no-color"); err != nil {
			return "", fmt.Errorf("%w\n%s", err, out.String())
		}
	}
	found := required.FindStringSubmatch(out.String())
	if found == nil {
		return "", fmt.Errorf("cannot find the provider's address in: %s", out.String())
	}
	return found[1], nil
}

// terraform runs the CLI on the configuration, the first time after init.
func (d *demo) terraform(want int, args ...string) error {
	chdir := "-chdir=" + d.work()
	if _, err := os.Stat(filepath.Join(d.work(), ".terraform.lock.hcl")); errors.Is(err, os.ErrNotExist) {
		// The output of init about mirrors and lock files would distract.
		var out bytes.Buffer
		if err := d.run(0, &out, d.cli, chdir, "init", "-no-color"); err != nil {
			return fmt.Errorf("%w\n%s", err, out.String())
		}
	}
	return d.run(want, os.Stdout, d.cli, append([]string{chdir}, args...)...)
}

// agent runs a command of the agent.
func (d *demo) agent(args ...string) error { return d.agentEnds(0, args...) }

// agentEnds runs a command of the agent that ends with an exit code.
func (d *demo) agentEnds(want int, args ...string) error {
	return d.run(want, os.Stdout, filepath.Join(d.bin, "osupgrade-agent"), args...)
}

// run runs a program and checks its exit code. The program has a process group of
// its own, so that Ctrl-C reaches it only through this process.
func (d *demo) run(want int, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(d.ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = d.env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		// Kill the rest of the group, such as the provider that Terraform started.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	var exit *exec.ExitError
	if code := cmd.ProcessState.ExitCode(); err == nil || errors.As(err, &exit) && d.ctx.Err() == nil {
		if code == want {
			return nil
		}
		return fmt.Errorf("%s %s ended with exit code %d, not %d", filepath.Base(name), strings.Join(args, " "), code, want)
	}
	return err
}

// startAgent starts osupgrade-agent dev on a free port, with more arguments, and waits for its
// file dev.env.
func (d *demo) startAgent(args ...string) error {
	data := filepath.Join(d.dir, "agent")
	log, err := os.Create(filepath.Join(d.dir, "agent.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	d.daemon = exec.Command(filepath.Join(d.bin, "osupgrade-agent"), append([]string{"dev", "--data", data, "--listen", "127.0.0.1:0", "--action-time", "1s"}, args...)...)
	d.daemon.Env, d.daemon.Stderr = d.env, log
	d.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := d.daemon.StdoutPipe()
	if err != nil {
		return err
	}
	if err := d.daemon.Start(); err != nil {
		d.daemon = nil
		return err
	}
	// Once it is ready the agent prints its address. If it fails it closes the pipe.
	first := make([]byte, 512)
	n, _ := out.Read(first)
	text, err := os.ReadFile(filepath.Join(data, "dev.env"))
	if err != nil {
		why, _ := os.ReadFile(log.Name())
		return fmt.Errorf("the agent did not start: %s", why)
	}
	fmt.Print(string(first[:n]))
	for line := range strings.Lines(string(text)) {
		d.env = append(d.env, strings.TrimPrefix(strings.TrimSpace(line), "export "))
	}
	return nil
}

// stopAgent stops the agent in order.
func (d *demo) stopAgent() error {
	if d.daemon == nil {
		return nil
	}
	if err := d.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return d.daemon.Wait()
}

// meddle changes the configuration through the REST API, as somebody with curl
// would.
func (d *demo) meddle(start string) error {
	body := fmt.Sprintf(`{"maintenance-windows":[{"days-of-week":"Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",`+
		`"start-time":%q,"timezone":"UTC","duration":"3h"}]}`, start)
	url := d.variable("OSUPGRADE_ENDPOINT") + "/v1/config/tenants/" + d.variable("OSUPGRADE_TENANT") + "/os-upgrade"
	request, err := http.NewRequestWithContext(d.ctx, http.MethodPatch, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+d.variable("OSUPGRADE_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	fmt.Printf("PATCH %s\n%s\n", url, body)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("PATCH %s was answered %s", url, answer.Status)
	}
	return nil
}

// get reads a part of the state of the tenant from the REST API.
func (d *demo) get(part string, to any) error {
	url := d.variable("OSUPGRADE_ENDPOINT") + "/v1/state/tenants/" + d.variable("OSUPGRADE_TENANT") + "/os-upgrade" + part
	request, err := http.NewRequestWithContext(d.ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+d.variable("OSUPGRADE_TOKEN"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s was answered %s", url, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(to)
}

// patience is how long a demo waits for one thing at most.
const patience = 45 * time.Second

// poll waits until reached reports that it is so. If that takes too long, the error is what reached
// saw last.
func (d *demo) poll(reached func() (is bool, seen string, err error)) error {
	for end := time.Now().Add(patience); ; {
		is, seen, err := reached()
		switch {
		case is || err != nil:
			return err
		case time.Now().After(end):
			return fmt.Errorf("after %s %s", patience, seen)
		}
		select {
		case <-d.ctx.Done():
			return d.ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// variable returns a variable of the environment that the programs get.
func (d *demo) variable(name string) string {
	for _, entry := range d.env {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	return ""
}
