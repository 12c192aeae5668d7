package ostree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// deployment is a system that the boot loader can start.
type deployment struct {
	// name is that of the state root, such as "fedora".
	name string
	// id is the checksum of the commit, or the digest of the image.
	id string
	// serial tells deployments of one commit apart.
	serial int
	// label is the version that its builder gave it; may be empty.
	label string
	// origin is what it follows, such as "origin:stable"; empty if that is not known.
	origin string
	booted bool
	// staged: it is completed in the shutdown, and starts then.
	staged bool
	pinned bool
	// fresh: it was made since the machine started.
	fresh bool
}

// shortID is how many hexadecimal digits of an id a version has.
const shortID = 12

// version is what people see of a deployment, and what tells it from others: the version
// of its builder and the beginning of its id.
func (d deployment) version() string { return versionOf(d.label, d.id) }

// offer returns what is found as what is wanted. Both must have the same version of their builder.
func (d deployment) offer(want image.Want) (image.Offer, error) {
	if want.Version != "" && d.label != want.Version {
		return image.Offer{}, want.Errorf("%s has the version %.80q, and the release has %q", d.id, d.label, want.Version)
	}
	return image.Offer{Version: d.version()}, nil
}

func versionOf(label, id string) string {
	_, digits, named := strings.Cut(id, ":") // A digest begins with its kind.
	if !named {
		digits = id
	}
	short := digits[:min(shortID, len(digits))]
	label = message.CleanText(text.Fit(label, message.MaxPlanName/2, "..."))
	if label == "" {
		return short
	}
	return label + " (" + short + ")"
}

// idOf returns the beginning of the id in a version.
func idOf(version string) string {
	if at := strings.LastIndex(version, "("); at >= 0 {
		version = strings.TrimSuffix(version[at+1:], ")")
	}
	return version
}

// deployments are the systems of a host, in the order in which the boot loader takes
// them.
type deployments []deployment

// running returns the deployment that runs.
func (all deployments) running() (deployment, error) {
	if i := slices.IndexFunc(all, func(d deployment) bool { return d.booted }); i >= 0 {
		return all[i], nil
	}
	return deployment{}, errors.New("no deployment runs: this host was not started by OSTree")
}

// first returns the deployment that the boot loader takes next, if that is not the one
// that runs.
func (all deployments) first() (first deployment, other bool) {
	if len(all) == 0 {
		return deployment{}, false
	}
	return all[0], !all[0].booted
}

// Check implements image.State.
func (all deployments) Check() error {
	_, err := all.running()
	return err
}

// Systems implements image.State. What was to start with this start of the
// machine and does not run, the machine has given up.
func (all deployments) Systems() (image.Systems, error) {
	running, err := all.running()
	if err != nil {
		return image.Systems{}, err
	}
	now := image.Systems{Name: running.name, Running: running.version()}
	switch first, other := all.first(); {
	case !other:
	case first.staged || first.fresh:
		now.Next = first.version()
	default:
		now.Failed = first.version()
	}
	return now, nil
}

// Versions implements image.State.
func (all deployments) Versions() (map[string]string, error) {
	now, err := all.Systems()
	if err != nil {
		return nil, err
	}
	return now.Versions(), nil
}

// Compatible implements image.State: it is the name of the state root that runs.
func (all deployments) Compatible() string {
	running, _ := all.running() // Check tells that none runs.
	return running.name
}

// find returns the deployment of a version from before, of the state root that runs.
func (all deployments) find(version string) (deployment, error) {
	running, err := all.running()
	if err != nil {
		return deployment{}, err
	}
	if i := slices.IndexFunc(all, func(d deployment) bool { return d.name == running.name && d.version() == version }); i >= 0 {
		return all[i], nil
	}
	return deployment{}, strategy.Fail(message.Install, fmt.Errorf("%s %s is not among the deployments any more, so it cannot start again", running.name, version))
}

// of returns a deployment of a commit or image; ok is false if there is none.
func (all deployments) of(id string) (d deployment, ok bool) {
	i := slices.IndexFunc(all, func(d deployment) bool { return d.id == id })
	if i < 0 {
		return deployment{}, false
	}
	return all[i], true
}

// next reports whether a version is the one that the boot loader takes next, in place of the
// one that runs.
func (all deployments) next(version string) bool {
	first, other := all.first()
	return other && first.version() == version
}

// confirm removes a failed deployment from its place as the one that starts first. One that
// runs needs no mark.
func (all deployments) confirm(ctx context.Context, failed string, discard func(ctx context.Context, now deployments, version string) error) error {
	systems, err := all.Systems()
	if err != nil || failed == "" || systems.Failed != failed {
		return err
	}
	return discard(ctx, all, failed)
}

// parseStatus reads the output of ostree admin status: a line for each deployment, and
// below it lines of what is known about it.
func parseStatus(printed string) (deployments, error) {
	var all deployments
	for line := range strings.Lines(printed) {
		line = strings.TrimRight(line, "\r\n")
		if head, current := strings.CutPrefix(line, "* "); current || strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") {
			if !current {
				head = line[2:]
			}
			d, err := parseHead(head)
			if err != nil {
				return nil, fmt.Errorf("cannot read the output of ostree admin status: %w", err)
			}
			d.booted = current
			all = append(all, d)
			continue
		}
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || len(all) == 0 {
			continue
		}
		d := &all[len(all)-1]
		switch key {
		case "Version":
			d.label = value
		case "origin refspec":
			d.origin = value
		case "Pinned":
			d.pinned = value == "yes"
		}
	}
	return all, nil
}

// parseHead reads the name of a deployment, such as "debian CHECKSUM.0 (pending)".
func parseHead(head string) (d deployment, err error) {
	words := strings.Fields(head)
	if len(words) < 2 {
		return d, fmt.Errorf("%.100q names no deployment", head)
	}
	checksum, serial, _ := strings.Cut(words[1], ".")
	if d.serial, err = strconv.Atoi(serial); err != nil || len(checksum) != 64 || strings.Trim(checksum, "0123456789abcdef") != "" {
		return d, fmt.Errorf("%.100q has no checksum and number", head)
	}
	d.name, d.id = words[0], checksum
	d.staged = strings.Contains(head, "(staged)") || strings.Contains(head, "(finalization locked)")
	return d, nil
}

// branch splits what a deployment follows into the remote and its branch.
func branch(origin string) (remote, name string, err error) {
	remote, name, ok := strings.Cut(origin, ":")
	if !ok || remote == "" || name == "" || strings.HasPrefix(remote, "-") || strings.HasPrefix(name, "-") || strings.ContainsAny(origin, " \n\t@") {
		return "", "", fmt.Errorf("%.100q is no branch of a remote; use REMOTE:BRANCH, such as origin:stable", origin)
	}
	return remote, name, nil
}

// follow returns an origin file that follows a branch: the one given, with its refspec
// replaced. After a way back by hand it has a checksum in that place, and the host would
// never be upgraded again. What is said of that deployment alone, such as that it is
// pinned, is left out.
func follow(origin, refspec string) string {
	file := "[origin]\nrefspec=" + refspec + "\n"
	var others string
	section := ""
	for line := range strings.Lines(origin) {
		line = strings.TrimSpace(line)
		key, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(line, "[") {
			section = line
		}
		switch {
		case line == "", section == "[libostree-transient]", section == "[origin]" && (line == section || strings.TrimSpace(key) == "refspec"):
		case section == "[origin]":
			file += line + "\n"
		default:
			others += line + "\n"
		}
	}
	return file + others
}
