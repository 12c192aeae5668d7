package sysupdate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// host is a host with systemd-boot, and with a systemd-sysupdate that prints what the one of systemd
// 262 printed on a real one (testdata). Versions are numbers. It keeps two of them.
type host struct {
	t    *testing.T
	root string
	s    *Strategy
	// source are the versions that the source has.
	source []string
	// panics are the versions that do not start.
	panics []string
	// old is a systemd-sysupdate that cannot acquire.
	old bool
	// unprotected: the transfer files protect nothing.
	unprotected bool
	// fails is what update and acquire print when they fail.
	fails string
	// started is the entry that was started, with the counters that it had then.
	started string
	calls   []string
}

const entriesFolder, pending = "boot/EFI/Linux", ".sysupdate.pending."

func newHost(t *testing.T, change func(h *host)) *host {
	t.Helper()
	h := &host{t: t, root: t.TempDir(), source: []string{"1", "2"}}
	for _, folder := range []string{entriesFolder, "etc", "usr/lib/systemd", "proc/sys/kernel"} {
		h.do(os.MkdirAll(filepath.Join(h.root, folder), 0o700))
	}
	for _, program := range []string{"systemd-sysupdate", "systemd-bless-boot"} {
		h.do(os.WriteFile(filepath.Join(h.root, "usr/lib/systemd", program), nil, 0o600))
	}
	h.do(os.WriteFile(filepath.Join(h.root, "proc/sys/kernel/osrelease"), []byte("6.1.0\n"), 0o600))
	h.write("kiosk_1.efi")
	if change != nil {
		change(h)
	}
	h.s = New(Options{root: h.root, run: h.run})
	h.start()
	return h
}

func (h *host) do(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) write(entry string) {
	h.t.Helper()
	h.do(os.WriteFile(filepath.Join(h.root, entriesFolder, entry), nil, 0o600))
}

// entries are the names of the boot entries, those of the newest version first.
func (h *host) entries() []string {
	h.t.Helper()
	found, err := os.ReadDir(filepath.Join(h.root, entriesFolder))
	h.do(err)
	names := make([]string, 0, len(found))
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(versionOf(b), versionOf(a)) })
	return names
}

// versionOf returns the version of an entry.
func versionOf(entry string) string {
	version := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(entry, pending), "kiosk_"), ".efi")
	version, _, _ = strings.Cut(version, "+")
	return version
}

func (h *host) of(version string) (entry string, ok bool) {
	all := h.entries()
	if i := slices.IndexFunc(all, func(entry string) bool { return versionOf(entry) == version }); i >= 0 {
		return all[i], true
	}
	return "", false
}

func (h *host) rename(from, to string) {
	h.t.Helper()
	h.do(os.Rename(filepath.Join(h.root, entriesFolder, from), filepath.Join(h.root, entriesFolder, to)))
}

// start starts the machine as systemd-boot does, as often as it takes.
func (h *host) start() {
	h.t.Helper()
	for {
		all := slices.DeleteFunc(h.entries(), func(entry string) bool { return strings.HasPrefix(entry, pending) })
		i := slices.IndexFunc(all, func(entry string) bool { return !strings.Contains(entry, "+0") })
		h.started = all[max(i, 0)]
		if name, counted, ok := strings.Cut(strings.TrimSuffix(h.started, ".efi"), "+"); ok && i >= 0 {
			left, done, _ := strings.Cut(counted, "-")
			l, _ := strconv.Atoi(left)
			d, _ := strconv.Atoi(done)
			next := fmt.Sprintf("%s+%d-%d.efi", name, l-1, d+1)
			h.rename(h.started, next)
			h.started = next
		}
		if version := versionOf(h.started); !slices.Contains(h.panics, version) {
			h.do(os.WriteFile(filepath.Join(h.root, "usr/lib/os-release"), []byte("ID=kiosk\nVERSION_ID="+version+"\nIMAGE_ID=kiosk\nIMAGE_VERSION="+version+"\n"), 0o600))
			return
		}
	}
}

func (h *host) runs() string {
	text, err := os.ReadFile(filepath.Join(h.root, "usr/lib/os-release"))
	h.do(err)
	_, version, _ := strings.Cut(strings.TrimSpace(string(text)), "IMAGE_VERSION=")
	return version
}

// run runs a program of the host.
func (h *host) run(_ context.Context, c program.Command) (program.Ended, error) {
	args := slices.DeleteFunc(slices.Clone(c.Args), func(a string) bool { return a == "--json=short" })
	call := filepath.Base(c.Name) + " " + strings.Join(args, " ")
	h.calls = append(h.calls, call)
	offline := slices.Contains(args, "--offline")
	args = slices.DeleteFunc(args, func(a string) bool { return a == "--offline" })
	argument := ""
	if len(args) > 1 {
		argument = args[1]
	}
	switch args[0] {
	case "list":
		if argument == "" {
			return h.list(offline), nil
		}
		return h.show(argument), nil
	case "check-new":
		all := h.all(false)
		if entry, here := h.of(all[0]); here && !strings.HasPrefix(entry, pending) {
			none := ended(map[string]any{"available": nil})
			none.Exit = 1
			return none, nil
		}
		return ended(map[string]any{"available": all[0]}), nil
	case "acquire", "update":
		return h.install(args[0], argument, offline), nil
	case "--help":
		if h.old {
			return program.Ended{Stdout: "  update [VERSION]  Install new version now\n"}, nil
		}
		return program.Ended{Stdout: "  acquire [VERSION]         Acquire (download) new version now\n"}, nil
	case "status", "good":
		return h.bless(args[0]), nil
	}
	return program.Ended{}, errors.New("there is no such call: " + call)
}

func ended(value any) program.Ended {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return program.Ended{Stdout: string(text) + "\n"}
}

func failed(said string) program.Ended {
	return program.Ended{Exit: 1, Printed: "Determining installed update sets…\n" + said + "\n"}
}

// all are the versions that are here or, unless that is not asked, at the source.
func (h *host) all(offline bool) (all []string) {
	for _, entry := range h.entries() {
		all = append(all, versionOf(entry))
	}
	if !offline {
		all = append(all, h.source...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	slices.Reverse(all)
	return all
}

func (h *host) list(offline bool) program.Ended {
	all := h.all(offline)
	current := "current"
	if entry, here := h.of(all[0]); here && strings.HasPrefix(entry, pending) {
		current = "current+pending"
	}
	return ended(map[string]any{current: all[0], "all": all, "appstreamUrls": []string{}})
}

func (h *host) show(version string) program.Ended {
	entry, here := h.of(version)
	if !here {
		return failed("Update '" + version + "' not found.")
	}
	shown := map[string]any{
		"version": version, "installed": true, "available": false, "partial": false, "obsolete": false, "incomplete": false,
		"protected": version == h.runs() && !h.unprotected,
		"contents":  []map[string]any{{"type": "partition", "path": "/dev/vda2"}, {"type": "regular-file", "path": "/" + entriesFolder + "/" + entry}},
	}
	if !h.old {
		shown["pending"] = strings.HasPrefix(entry, pending)
	}
	return ended(shown)
}

// install acquires or installs a version.
func (h *host) install(verb, version string, offline bool) program.Ended {
	entry, here := h.of(version)
	switch {
	case h.fails != "":
		return failed(h.fails)
	case here && !strings.HasPrefix(entry, pending):
		return program.Ended{Printed: "Selected update '" + version + "' is already installed. Skipping update.\n"}
	case here && verb == "update":
		h.rename(entry, strings.TrimPrefix(entry, pending))
		return program.Ended{}
	case !slices.Contains(h.source, version) || offline:
		return failed("Update '" + version + "' not found.")
	}
	for all := h.entries(); len(all) > 1; all = h.entries() {
		i := slices.IndexFunc(all, func(entry string) bool { return versionOf(entry) != h.runs() })
		h.do(os.Remove(filepath.Join(h.root, entriesFolder, all[i])))
	}
	prefix := ""
	if verb == "acquire" {
		prefix = pending
	}
	h.write(prefix + "kiosk_" + version + "+3-0.efi")
	return program.Ended{}
}

// bless is systemd-bless-boot.
func (h *host) bless(verb string) program.Ended {
	name, _, counted := strings.Cut(h.started, "+")
	_, err := os.Stat(filepath.Join(h.root, entriesFolder, h.started))
	switch {
	case !counted:
		return program.Ended{Stdout: "clean\n"}
	case err != nil:
		return program.Ended{Stdout: "good\n"}
	case verb == "status":
		return program.Ended{Stdout: "indeterminate\n"}
	}
	h.rename(h.started, name+".efi")
	return program.Ended{}
}

func (h *host) job(plan message.ChangeSet) strategy.Job {
	return strategy.Job{Run: 41, Plan: plan, Progress: func(int, string) {}}
}

func (h *host) prepare() strategy.Job {
	h.t.Helper()
	plan, err := h.s.Prepare(h.t.Context(), h.job(message.ChangeSet{}))
	h.do(err)
	return h.job(plan)
}

func (h *host) upgrade(job strategy.Job) {
	h.t.Helper()
	if outcome, err := h.s.Upgrade(h.t.Context(), job); err != nil || outcome != strategy.RebootRequired {
		h.t.Fatalf("upgrade: %v, %v", outcome, err)
	}
	job.Staged = true
	if missing, err := h.s.Missing(h.t.Context(), job); err != nil || len(missing) > 0 {
		h.t.Fatalf("the upgrade is missing though it starts next: %v, %v", missing, err)
	}
	job.Staged = false
	if missing, err := h.s.Missing(h.t.Context(), job); err != nil || len(missing) == 0 {
		h.t.Fatalf("the upgrade counts as complete though it does not run: %v", err)
	}
}

// booted starts the machine, and returns what the start came to once it is confirmed.
func (h *host) booted() strategy.Boot {
	h.t.Helper()
	h.start()
	boot, err := h.s.Booted(h.t.Context())
	h.do(err)
	h.do(h.s.Confirm(h.t.Context(), boot))
	return boot
}
