package sysupdate

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// listing is what list prints without a version, newest first, as far as it is used.
type listing struct {
	All []string `json:"all"`
}

// set is what list prints about a version: all that belongs to it.
type set struct {
	Version   string `json:"version"`
	Installed bool   `json:"installed"`
	// Partial, Pending and Incomplete: not all of it is there. Pending: it was acquired.
	Partial    bool `json:"partial"`
	Pending    bool `json:"pending"`
	Incomplete bool `json:"incomplete"`
	// Protected: it is not removed to make room.
	Protected bool `json:"protected"`
	Contents  []struct {
		Path string `json:"path"`
	} `json:"contents"`
}

// whole reports whether all of a version is installed.
func (s set) whole() bool { return s.Installed && !s.Partial && !s.Pending && !s.Incomplete }

// entries are the files of a version that systemd-boot starts: kernel images and entries, by the
// Boot Loader Specification.
func (s set) entries() (paths []string) {
	for _, c := range s.Contents {
		folder := path.Dir(c.Path)
		if strings.HasSuffix(folder, "/EFI/Linux") && path.Ext(c.Path) == ".efi" || strings.HasSuffix(folder, "/loader/entries") && path.Ext(c.Path) == ".conf" {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// countable returns an error for a version without a boot entry whose starts could be counted.
func (s set) countable() error {
	if len(s.entries()) == 0 {
		return strategy.Fail(message.Install, fmt.Errorf("version %s has no boot entry of its own (EFI/Linux or loader/entries), by which systemd-boot would leave it out", s.Version))
	}
	return nil
}

// parse reads JSON that systemd-sysupdate has printed.
func parse[T any](printed string) (into T, err error) {
	if err := json.Unmarshal([]byte(printed), &into); err != nil {
		return into, fmt.Errorf("cannot read the output of systemd-sysupdate: %w", err)
	}
	return into, nil
}

// counters are the counters in the name of an entry: how many starts it has left, and how many
// have failed (systemd.io, Automatic Boot Assessment).
var counters = text.Pattern(`\+([0-9]+)(-([0-9]+))?(\.[a-z]+)$`)

// retired are the counters of an entry that is not to start, and that has not failed.
const retired = "+0-0"

// tries are how many starts an entry gets that is to start again.
const tries = "+3-0"

// counted returns the path of an entry with other counters.
func counted(entry, with string) string {
	ext := path.Ext(entry)
	if at := counters().FindStringIndex(entry); at != nil {
		entry = entry[:at[0]] + ext
	}
	return strings.TrimSuffix(entry, ext) + with + ext
}

// spent reports whether an entry has no start left, and whether that is because its starts have
// failed. systemd-boot takes it only if there is no other.
func spent(entry string) (out, failed bool) {
	found := counters().FindStringSubmatch(entry)
	if found == nil {
		return false, false
	}
	out = strings.Trim(found[1], "0") == ""
	return out, out && strings.Trim(found[3], "0") != ""
}

// system is what a host has.
type system struct {
	// id and running are the name of the image that runs and its version, by its os-release.
	id, running string
	// sets are the versions on the host, newest first.
	sets []set
}

// find returns a version on the host; ok is false if it is not there.
func (s system) find(version string) (found set, ok bool) {
	i := slices.IndexFunc(s.sets, func(one set) bool { return one.Version == version })
	if i < 0 {
		return set{}, false
	}
	return s.sets[i], true
}

// Check implements image.State.
func (s system) Check() error {
	running, ok := s.find(s.running)
	switch {
	case s.id == "" || s.running == "":
		return errors.New("the system that runs does not say which image it is; set IMAGE_ID and IMAGE_VERSION in its /usr/lib/os-release")
	case !ok:
		return fmt.Errorf("the version that runs, %s, is none that systemd-sysupdate has installed; see what systemd-sysupdate list shows", s.running)
	case !running.Protected:
		return fmt.Errorf("the version that runs, %s, might be removed to make room for another; set ProtectVersion=%%A in the transfer files in sysupdate.d", s.running)
	}
	return nil
}

// Systems implements image.State. systemd-boot starts the newest version whose starts have not
// failed.
func (s system) Systems() (image.Systems, error) {
	at := slices.IndexFunc(s.sets, func(one set) bool { return one.Version == s.running })
	if at < 0 {
		return image.Systems{}, s.Check()
	}
	now := image.Systems{Name: s.id, Running: s.running}
	for i, one := range s.sets {
		out, failed := one.spent()
		switch {
		case i == at && !out:
			return now, nil
		case i == at, !one.whole():
		case !out:
			now.Next = one.Version
			return now, nil
		case failed && i < at && now.Failed == "":
			now.Failed = one.Version
		}
	}
	return now, nil
}

// spent reports whether no entry of a version has a start left, and whether its starts have failed.
func (s set) spent() (out, failed bool) {
	for _, entry := range s.entries() {
		o, f := spent(entry)
		out, failed = out || o, failed || f
	}
	return out, failed
}

// Versions implements image.State: the version that runs, and the one that starts next.
func (s system) Versions() (map[string]string, error) {
	now, err := s.Systems()
	if err != nil {
		return nil, err
	}
	return now.Versions(), nil
}

// Compatible implements image.State.
func (s system) Compatible() string { return s.id }

// isVersion reports whether a text can be a version: it is an argument of systemd-sysupdate.
func isVersion(version string) bool {
	return versionText().MatchString(version) && len(version) <= message.MaxPlanName
}

// versionText is what systemd takes as a version.
var versionText = text.Pattern(`^[0-9A-Za-z][0-9A-Za-z.+~^_-]*$`)
