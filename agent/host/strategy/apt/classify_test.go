package apt

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestFailuresOfARealApt goes through every way in which apt and dpkg failed on a real
// Debian 12, by what they printed there.
func TestFailuresOfARealApt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		class message.Class
		says  []string
	}{
		"down":             {message.Transient, []string{"Connection refused", "check the network"}},
		"503":              {message.Transient, []string{"503  Service Unavailable"}},
		"no-name":          {message.Transient, []string{"Temporary failure resolving 'repository.invalid'"}},
		"missing-404":      {message.Repository, []string{"does not have a Release file", "check address and suite"}},
		"wrong-key":        {message.Repository, []string{"is not signed", "signed-by"}},
		"expired":          {message.Repository, []string{"is expired (invalid since", "check the clock"}},
		"bad-sources":      {message.Repository, []string{"Malformed entry 1 in list file"}},
		"hash-mismatch":    {message.Artifact, []string{"Hash Sum mismatch"}},
		"nodownload":       {message.Artifact, []string{"Unable to fetch some archives", "prepare the host again"}},
		"noversion":        {message.Repository, []string{"Version '3.0' for 'appliance-kernel' was not found"}},
		"nopackage":        {message.Repository, []string{"Unable to locate package nothing-like-this"}},
		"space-download":   {message.Space, []string{"You don't have enough free space in /var/cache/apt/archives"}},
		"space-unpack":     {message.Space, []string{"No space left on device", "make room"}},
		"lock-frontend":    {message.Lock, []string{"Unable to acquire the dpkg frontend lock"}},
		"lock-held":        {message.Lock, []string{"It is held by process 93 (apt-get)"}},
		"lock-dpkg":        {message.Lock, []string{"locked by another process with pid 93"}},
		"broken-postinst":  {message.Install, []string{"appliance-broken", "post-installation script subprocess returned error exit status 3"}},
		"conffile-default": {message.Install, []string{"end of file on stdin at conffile prompt", "set apt-conffiles"}},
		"interrupted":      {message.Install, []string{"dpkg was interrupted", "dpkg --configure -a"}},
		"sim-unmet":        {message.Install, []string{"appliance-needy : Depends: no-such-lib"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit, printed := recorded(t, name)
			if exit == 0 {
				t.Fatal("the recording is of a command that did not fail")
			}
			err := failure("apt-get install", program.Ended{Exit: exit, Printed: printed}, nil)
			if got := strategy.ClassOf(err); got != row.class {
				t.Errorf("the class is %q, want %q: %v", got, row.class, err)
			}
			for _, want := range row.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not have %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "Sub-process") {
				t.Errorf("the error has a line that says nothing: %v", err)
			}
		})
	}
}

// TestFailedScript has each thing told once, though dpkg and apt tell it in turn, and
// with it what the script printed.
func TestFailedScript(t *testing.T) {
	t.Parallel()
	_, printed := recorded(t, "broken-postinst")
	var told []string
	for line := range strings.Lines(statusOf(t)) {
		if status, ok := parseStatusLine(line); ok && status.kind == "pmerror" {
			told = append(told, status.of+": "+status.text)
		}
	}
	if len(told) != 1 {
		t.Fatalf("the recording has %q", told)
	}
	const reason = "installed appliance-broken package post-installation script subprocess returned error exit status 3"
	const failed = "dpkg: error processing package appliance-broken (--configure):\n " + reason + "\n"
	for name, row := range map[string]struct{ printed, want string }{
		"recorded":              {printed, "appliance-broken: " + reason + ", after it printed: appliance-broken: not today"},
		"a script that is mute": {"Setting up appliance-broken (2.0) ...\n" + failed, "appliance-broken: " + reason},
		"the last lines":        {"Setting up appliance-broken (2.0) ...\none\ntwo\n\nthree\n" + failed, "appliance-broken: " + reason + ", after it printed: two / three"},
		"after another error": {
			"dpkg: error processing archive /a.deb (--unpack):\n conflicting packages\nno\n" + failed,
			"/a.deb: conflicting packages; appliance-broken: " + reason + ", after it printed: no",
		},
		"without dpkg's own words": {"", "appliance-broken: " + reason},
	} {
		if got, want := failure("apt-get install", program.Ended{Exit: 100, Printed: row.printed}, told).Error(), "apt-get install: "+row.want+" (exit status 100)"; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestReasonInTheMidstOfALine reads what apt prints to both outputs at once.
func TestReasonInTheMidstOfALine(t *testing.T) {
	t.Parallel()
	err := failure("apt-get install", program.Ended{Exit: 100, Printed: "Reading package lists...E: The package a needs to be reinstalled, but I can't find an archive for it.\n\nBuilding\n"}, nil)
	if !strings.Contains(err.Error(), "apt-get install: The package a needs to be reinstalled") {
		t.Errorf("got %v", err)
	}
}

func TestFailureWithoutAReason(t *testing.T) {
	t.Parallel()
	err := failure("apt-get update", program.Ended{Exit: 139}, nil)
	if got := err.Error(); got != "apt-get update: it printed no reason (exit status 139)" {
		t.Errorf("got %q", got)
	}
	if strategy.ClassOf(err) != message.Install {
		t.Errorf("class %q", strategy.ClassOf(err))
	}
}

// TestFailureIsBounded has a script print a lot, with control characters.
func TestFailureIsBounded(t *testing.T) {
	t.Parallel()
	err := failure("apt-get install", program.Ended{Exit: 100, Printed: strings.Repeat("E: \x1b[31m"+strings.Repeat("x", 5000)+"\n", 50)}, []string{strings.Repeat("y", 9000)})
	if len(err.Error()) > program.MaxSaid+200 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%d bytes: %.200q", len(err.Error()), err.Error())
	}
}
